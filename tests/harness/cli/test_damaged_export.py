"""A damaged export: `harness check`, a dry run and a run agree on it, and no question is asked."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from exporter import Export
from tests.support.cli import mistake, run_cli
from tests.support.runs import jsonl, make_export


def edited(file: str, old: bytes, new: bytes) -> Callable[[Path], None]:
    def damage(export: Path) -> None:
        data = (export / file).read_bytes()
        assert old in data
        (export / file).write_bytes(data.replace(old, new, 1))

    return damage


DAMAGES: dict[str, Callable[[Path], None]] = {
    "no index": lambda export: shutil.rmtree(export / "index"),
    "an index file gone": lambda export: (export / "index/candidates.npy").unlink(),
    "an index of another graph": lambda export: np.save(export / "index/offsets.npy", np.zeros(3, np.int64)),
    "an index of another kind": lambda export: np.save(export / "index/candidates.npy", np.zeros(3, np.int64)),
    "fewer nodes": edited("manifest.json", b'"nodes": 60', b'"nodes": 9'),
    "more edges": edited("manifest.json", b'"edges": ', b'"edges": 1'),
    "another split": edited("manifest.json", b'"count": ', b'"count": 1'),
    "a manifest without hashes": edited("manifest.json", b'"sha256"', b'"sha1"'),
    "a link to the questions": lambda export: (export / "files/q").symlink_to("../queries"),
    "a link to a file": lambda export: (export / "files/q").symlink_to("schema.json"),
    "a link to nothing": lambda export: (export / "files/nodes/q").symlink_to("nowhere"),
    "a file more": lambda export: (export / "files/answers.txt").touch(),
    "a question file more": lambda export: (export / "queries/more.jsonl").touch(),
    "a changed record": edited("files/nodes/0000.jsonl", b"true", b"tree"),
    "a changed question": edited("queries/queries.jsonl", b"[", b"{"),
}


@pytest.fixture
def export(tmp_path: Path) -> Export:
    return make_export(tmp_path / "graph")


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_all_commands_see_it(export: Export, tmp_path: Path, damage: Callable[[Path], None]) -> None:
    script = jsonl(tmp_path / "script.jsonl", [{"role": "assistant", "content": "ANSWER: [0]"}])
    run = ["run", "--graph", str(export.path), "--mode", "files", "--model", f"scripted:{script}"]
    assert run_cli("check", str(export.path)).code == 0
    assert run_cli(*run, "--dry-run").code == 0
    damage(export.path)
    found = run_cli("check", str(export.path))
    assert found.code == 1, found
    out = tmp_path / "run"
    for more in ((), ("--dry-run",)):
        mistake(run_cli(*run, "--out", str(out), *more), "damaged", "harness check")
    assert not out.exists()
