"""Which runs are one system, and what a system is called."""

from __future__ import annotations

from pathlib import Path

import pytest

from exporter import Export
from harness.errors import UserError
from harness.systems import Key, find_runs, load_systems
from tests.support.saved import Ask, Try, make_export, make_run


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Export]:
    folder = tmp_path_factory.mktemp("graphs")
    return {name: make_export(folder / name, name, [Ask("q1", (1,)), Ask("q2", (2,))]) for name in ("a", "b")}


def test_a_parents_runs_over_several_graphs_are_one_system_for_each_mode(
    tmp_path: Path, graphs: dict[str, Export]
) -> None:
    for created, (graph, mode) in enumerate([("b", "files"), ("a", "files"), ("b", "tools"), ("a", "tools")]):
        make_run(tmp_path / f"{graph}-{mode}", graphs[graph], {"q1": Try((1,))}, mode=mode, created=float(created))
    systems = load_systems([tmp_path])
    assert [(system.label, list(system.runs)) for system in systems] == [("files", ["b", "a"]), ("tools", ["b", "a"])]
    assert len(systems[0]) == 4
    assert systems[0].has(Key("a", "q1"))
    assert not systems[0].has(Key("a", "q2"))  # not asked yet
    assert not systems[0].has(Key("c", "q1"))
    assert systems[0].field("hit@1", Key("a", "q1")) == 1
    in_order = load_systems([tmp_path / "a-tools", tmp_path / "a-files", tmp_path / "b-files", tmp_path])
    assert [(system.label, list(system.runs)) for system in in_order] == [("tools", ["a", "b"]), ("files", ["a", "b"])]


def test_runs_that_share_a_graph_are_told_apart(tmp_path: Path, graphs: dict[str, Export]) -> None:
    for name, model in (("one", "m"), ("two", "m"), ("three", "n")):
        make_run(tmp_path / name, graphs["a"], {}, model=model)
    make_run(tmp_path / "four", graphs["a"], {}, mode="shell")
    make_run(tmp_path / "deep" / "one", graphs["a"], {})

    def labels(*names: str) -> list[str]:
        return [system.label for system in load_systems([tmp_path / name for name in names])]

    assert labels("one", "four") == ["files", "shell"]
    assert labels("one", "three", "four") == ["files (m)", "files (n)", "shell"]
    assert labels("one", "two", "three", "four") == ["files (one)", "files (two)", "files (three)", "shell"]
    assert labels("one", "deep/one") == [f"files ({tmp_path / 'one'})", f"files ({tmp_path / 'deep' / 'one'})"]


def test_a_run_joins_the_one_beside_it(tmp_path: Path, graphs: dict[str, Export]) -> None:
    for parent in ("x", "y"):
        for graph in ("a", "b"):
            make_run(tmp_path / parent / graph, graphs[graph], {})
    systems = load_systems([tmp_path / "x/a", tmp_path / "y/a", tmp_path / "x/b", tmp_path / "y/b"])
    assert [{run.path.parent.name for run in system.runs.values()} for system in systems] == [{"x"}, {"y"}]


def test_other_settings_are_another_system(tmp_path: Path, graphs: dict[str, Export]) -> None:
    make_run(tmp_path / "a", graphs["a"], {})
    make_run(tmp_path / "b", graphs["b"], {}, set_mode={"answer": {"source": "message", "max_ids": 100}})
    assert len(load_systems([tmp_path])) == 2


def test_one_graph_under_two_names_is_one_graph(tmp_path: Path, graphs: dict[str, Export]) -> None:
    make_run(tmp_path / "a", graphs["a"], {}, created=1.0)
    make_run(tmp_path / "b", graphs["a"], {}, mode="tools", graph="/somewhere/a", created=2.0)
    assert [list(system.runs) for system in load_systems([tmp_path])] == [["a"], ["a"]]


def test_folders_without_runs_are_the_users_mistake(tmp_path: Path, graphs: dict[str, Export]) -> None:
    with pytest.raises(UserError, match="holds no runs"):
        find_runs(tmp_path)
    with pytest.raises(UserError, match="there is no folder"):
        find_runs(tmp_path / "missing")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "manifest.json").write_text("{}")
    with pytest.raises(UserError, match="not the manifest of a run"):
        find_runs(tmp_path)
