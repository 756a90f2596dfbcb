"""The BioGO sample: complete, and every gold answer is what its program finds in the exported files alone."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from examples.biogo.graph import Graph
from examples.biogo.questions import QUESTIONS, rows
from exporter import Export, biogo_sources, check, export_tables

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Export:
    sample = biogo_sources()
    out = tmp_path_factory.mktemp("biogo") / "biogo"
    return export_tables(sample.nodes, sample.edges, out, queries=sample.queries)


@pytest.fixture(scope="module")
def computed(export: Export) -> dict[str, dict[str, object]]:
    """What the programs find, from a copy of the files alone: no index, no questions beside them."""
    return {str(row["id"]): row for row in rows(Graph(export.files))}


def test_the_sample_is_what_its_notice_says(export: Export) -> None:
    assert check(export.path) == []
    assert (export.node_count, export.schema["edges"]) == (2_522, 8_461)
    assert not any(relation["symmetric"] for relation in export.schema["relations"])
    assert "2,522 nodes, 8,461 edges" in (biogo_sources().folder / "NOTICE").read_text("utf-8")


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_gold_is_what_the_program_finds(
    question: object, export: Export, computed: dict[str, dict[str, object]]
) -> None:
    asked = {row["id"]: row for row in export.queries()}[question.id]  # type: ignore[attr-defined]
    found = computed[asked["id"]]
    ids = [export.node(node_id)["attributes"]["source_id"] for node_id in asked["answer_ids"]]
    assert {**asked, "answer_ids": ids} == found
    assert 1 <= len(ids) <= 20


def test_there_are_questions_in_every_split(export: Export) -> None:
    questions = list(export.queries())
    assert {row["id"] for row in questions} == {question.id for question in QUESTIONS}
    assert len({row["query"] for row in questions}) == len(questions) >= 30
    splits = Counter(row["split"] for row in questions)
    assert set(splits) == {"train", "val", "test"}
    assert splits["test"] >= 15
    assert all(not row["query"].startswith(" ") and "  " not in row["query"] for row in questions)


def test_the_questions_file_is_written_by_its_script(export: Export) -> None:
    command = [sys.executable, "-m", "examples.biogo.questions", str(export.path)]
    written = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    assert written == biogo_sources().queries.read_bytes()


def test_the_sample_is_packed_without_a_time_or_a_name() -> None:
    for path in (biogo_sources().nodes, biogo_sources().edges):
        packed = path.read_bytes()
        assert packed[4:8] == bytes(4)
        assert not packed[3] & 8
        assert gzip.decompress(packed)


def test_an_installation_finds_its_own_sample(tmp_path: Path) -> None:
    """The wheel has the sample under harness/; it is found without importing harness."""
    shutil.copytree(ROOT / "exporter", tmp_path / "exporter")
    shutil.copytree(ROOT / "examples" / "biogo", tmp_path / "harness" / "examples" / "biogo")
    (tmp_path / "harness" / "__init__.py").write_text("raise SystemExit('imported')", encoding="utf-8")
    code = "from exporter import biogo_sources; print(biogo_sources().queries)"
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == str(tmp_path / "harness" / "examples" / "biogo" / "queries.jsonl")
    shutil.rmtree(tmp_path / "harness")
    lost = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "the BioGO sample is missing from this installation" in lost.stderr
