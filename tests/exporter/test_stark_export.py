"""STaRK's graphs: every node, attribute and edge arrives, in STaRK's order and direction."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exporter import Export, ExportError, check, export_stark
from exporter.stark import DATASETS, Place, find
from tests.support.shared import shared
from tests.support.stark_files import (
    AMAZON,
    AMAZON_EDGES,
    AMAZON_FOLDER,
    MAG,
    MAG_EDGES,
    MAG_NODE_TYPES,
    PRIME,
    PRIME_TYPES,
    Edge,
    graph_files,
    write_archive,
    write_questions,
    write_tree,
)  # fmt: skip

NAMES = ("prime", "mag", "amazon")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tree(tmp_path_factory.mktemp("stark"))


@pytest.fixture(scope="module")
def exports(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Export]:
    out = tmp_path_factory.mktemp("exports")
    return {name: export_stark(name, place(name, tree), out / name) for name in NAMES}


def place(name: str, root: Path) -> Place:
    found = find(DATASETS[name], root)
    assert found is not None
    return found


def edges(export: Export) -> set[Edge]:
    return {(a, b, number) for number in range(len(export.schema["relations"])) for a, b, _ in export.edges(number)}


def as_json(value: Any) -> Any:
    """What is in a pickle as JSON has it, by other means than the exporter's."""
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_json(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value != value:  # noqa: PLR0124
        return None
    return value.replace("\ud83d", "\ufffd") if isinstance(value, str) else value


@pytest.mark.parametrize(("name", "nodes"), [("prime", PRIME), ("mag", MAG), ("amazon", AMAZON)])
def test_every_node_and_attribute_arrives_in_its_order(exports: dict[str, Export], name: str, nodes: Any) -> None:
    found = list(exports[name].nodes())
    assert [record["node_id"] for record in found] == list(range(len(nodes)))
    for record in found:
        attributes = record["attributes"]
        assert attributes.pop("source_id") == record["node_id"]
        assert attributes == as_json(nodes[record["node_id"]])
        assert list(attributes) == list(nodes[record["node_id"]])
    assert check(exports[name].path) == []


def test_types_names_and_candidates(exports: dict[str, Export]) -> None:
    told = {name: [(r["node_type"], r["name"], r["is_candidate"]) for r in exports[name].nodes()] for name in NAMES}
    assert told["prime"] == [
        ("gene/protein", "PHYHIP", True), ("drug", "A-1\ndrug", True),
        ("disease", "pain", True), ("disease", "ache", True),
    ]  # fmt: skip
    assert told["mag"] == [
        ("author", "Ada-1 Lo", False), ("institution", "", False), ("field_of_study", "Graphs", False),
        ("paper", "On shells", True), ("paper", "On graphs-1", True),
    ]  # fmt: skip
    assert told["amazon"] == [
        ("product", "Ball \u2013 pack\tof 2", True), ("product", "Half \ufffd of a pair", True),
        ("brand", "Acme", False), ("category", "balls", False), ("color", "red", False),
    ]  # fmt: skip


def test_type_and_relation_ids_are_starks(exports: dict[str, Export]) -> None:
    prime = exports["prime"].schema
    assert [item["name"] for item in prime["node_types"]] == list(PRIME_TYPES)
    assert [(item["id"], item["file"]) for item in prime["relations"]][16:] == [
        (16, "edges/16.tsv"),
        (17, "edges/17.tsv"),
    ]
    assert prime["relations"][16] == {
        "id": 16, "name": "expression present", "file": "edges/16.tsv", "rows": 0, "symmetric": False, "triples": [],
        "attributes": [],
    }  # fmt: skip
    assert [item["name"] for item in exports["mag"].schema["relations"]] == list(DATASETS["mag"].relations)


def test_raw_direction_and_one_edge_set_for_each_relation(exports: dict[str, Export]) -> None:
    assert edges(exports["mag"]) == set(MAG_EDGES)
    assert edges(exports["amazon"]) == set(AMAZON_EDGES)
    assert {(0, 1, 0), (0, 1, 1)} <= edges(exports["amazon"])  # also_buy and also_view between the same two


def test_edges_stored_both_ways_are_written_once_with_both_counts(exports: dict[str, Export]) -> None:
    export = exports["prime"]
    relations = {item["name"]: item for item in export.schema["relations"] if item["rows"]}
    assert {name: (item["symmetric"], item["source_rows"], item["rows"]) for name, item in relations.items()} == {
        "target": (True, 2, 1), "indication": (True, 2, 1), "parent-child": (True, 7, 4),
    }  # fmt: skip
    assert list(export.edges(3)) == [(0, 1, ())]  # gene/protein is the lower type
    assert list(export.edges(6)) == [(2, 1, ())]  # disease before drug, though its node id is higher
    assert list(export.edges(10)) == [(2, 3, ()), (2, 3, ()), (3, 3, ()), (3, 3, ())]
    assert {"name": "parent-child", "source_rows": 7, "rows": 4} in export.manifest["relations"]


def test_figures_that_are_not_the_published_ones_are_warnings(exports: dict[str, Export]) -> None:
    warnings = exports["prime"].manifest["source"]["warnings"]
    assert "4 nodes, but the published data has 129,375" in warnings
    assert "11 edge rows, but the published data has 8,100,498" in warnings
    assert "2 questions in split test, but the published data has 2,801" in warnings
    assert any(text.startswith("the archive's sha256 is") for text in warnings)
    # Two relations join 0 and 1: STaRK has one arc each way. The self loop is one arc.
    assert (
        "9 edges without direction, but the published data has 9,443,802"
        in (exports["amazon"].manifest["source"]["warnings"])
    )


def test_inputs_are_recorded_with_their_hashes(exports: dict[str, Export]) -> None:
    inputs = exports["mag"].manifest["source"]["inputs"]
    assert [entry["file"] for entry in inputs] == [
        "processed.zip", "stark_qa/stark_qa.csv", "split/train.index", "split/val.index", "split/test.index",
        "split/test-0.1.index", "stark_qa/stark_qa_human_generated_eval.csv",
    ]  # fmt: skip
    assert all(entry["bytes"] and len(entry["sha256"]) == 64 for entry in inputs)


def test_questions(exports: dict[str, Export]) -> None:
    questions = list(exports["prime"].queries())
    assert [(q["id"], q["split"], q["answer_ids"]) for q in questions] == [
        ("2", "train", [3]), ("1", "val", [3, 2]), ("3", "test", [2]), ("0", "test", [2]), ("3", "test-0.1", [2]),
        ("human-0", "human", [2, 3]),
    ]  # fmt: skip
    assert questions[1]["query"] == "Two lines,\nwith a comma?"
    assert questions[-1]["answer_ids_source"] == "made for testing"


def layouts(tree: Path, folder: Path) -> list[Path]:
    """The same graphs unpacked: in the Hugging Face layout, and in that of STaRK's `root`."""
    for name in NAMES:
        with zipfile.ZipFile(tree / "skb" / name / "processed.zip") as archive:
            archive.extractall(folder / "unpacked" / "skb" / name)
            archive.extractall(folder / "root" / name)
        shutil.copytree(tree / "qa" / name, folder / "unpacked" / "qa" / name)
        shutil.copytree(tree / "qa" / name, folder / "root" / name, dirs_exist_ok=True)
    return [folder / "unpacked", folder / "root"]


@pytest.mark.parametrize("name", NAMES)
def test_unpacked_layouts_give_the_same_export(
    exports: dict[str, Export], tree: Path, tmp_path: Path, name: str
) -> None:
    for number, root in enumerate(layouts(tree, tmp_path)):
        export = export_stark(name, place(name, root), tmp_path / "out" / str(number))
        assert export.digest == exports[name].digest
        assert list(export.queries()) == list(exports[name].queries())
        files = [entry["file"] for entry in export.manifest["source"]["inputs"]]
        assert any(file.endswith("/node_info.pkl") for file in files)


def test_a_graph_without_questions_and_with_queries_of_ones_own(tree: Path, tmp_path: Path) -> None:
    bare = Place(tree / "skb" / "mag" / "processed.zip", None)
    export = export_stark("mag", bare, tmp_path / "bare")
    assert list(export.queries()) == []
    assert "no questions found beside the graph" in export.manifest["source"]["warnings"]
    (tmp_path / "mine.csv").write_text('id,query,answer_ids\nq,What?,"[4]"\n', encoding="utf-8")
    export = export_stark("mag", bare, tmp_path / "mine", queries=tmp_path / "mine.csv")
    assert [q["answer_ids"] for q in export.queries()] == [[4]]


def test_amazons_graph_of_products_only(tmp_path: Path) -> None:
    files = graph_files({0: AMAZON[0], 1: AMAZON[1]}, [], [(0, 1, 0), (0, 1, 1)])
    del files["node_types.pt"]
    files["node_type_dict.pkl"] = {0: "product"}
    files["edge_type_dict.pkl"] = {0: "also_buy", 1: "also_view"}
    write_archive(tmp_path / "amazon" / "processed.zip", "processed", files)
    export = export_stark("amazon", place("amazon", tmp_path), tmp_path / "out")
    assert [record["node_type"] for record in export.nodes()] == ["product", "product"]
    assert len(export.schema["relations"]) == 2


class TestRefused:
    """Each leaves nothing behind and names what is wrong."""

    def refuse(self, folder: Path, name: str, files: dict[str, Any], in_zip: str = "processed") -> str:
        write_archive(folder / name / "processed.zip", in_zip, files)
        with pytest.raises(ExportError) as caught:
            export_stark(name, place(name, folder), folder / "out")
        assert not (folder / "out").exists()
        assert "again" in caught.value.hint or "a value of type" in str(caught.value)
        return str(caught.value)

    @pytest.mark.parametrize("missing", ["node_types.pt", "edge_index.pt", "edge_types.pt"])
    @pytest.mark.parametrize("name", NAMES)
    def test_a_missing_file(self, tmp_path: Path, tree: Path, name: str, missing: str) -> None:
        folder = AMAZON_FOLDER if name == "amazon" else "processed"
        with zipfile.ZipFile(tree / "skb" / name / "processed.zip") as archive:
            archive.extractall(tmp_path / "unpacked" / name)
            stored = {path: archive.read(path) for path in archive.namelist() if path.startswith(f"{folder}/")}
        del stored[f"{folder}/{missing}"]
        stored.pop("processed/.DS_Store", None)
        files = {path.removeprefix(f"{folder}/"): data for path, data in stored.items()}
        assert self.refuse(tmp_path / "packed", name, files, folder).endswith(f"no {folder}/{missing} in it")
        (tmp_path / "unpacked" / name / folder / missing).unlink()
        with pytest.raises(ExportError, match=f"{missing} in it"):
            export_stark(name, place(name, tmp_path / "unpacked"), tmp_path / "out")
        assert not (tmp_path / "out").exists()

    def test_a_node_that_is_missing(self, tmp_path: Path) -> None:
        nodes = {node: info for node, info in MAG.items() if node != 4}
        told = self.refuse(tmp_path, "mag", graph_files(nodes, MAG_NODE_TYPES, MAG_EDGES))
        assert told.endswith("node_types.pt has 5 numbers, but node_info.pkl has 4 nodes")

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"node_types.pt": np.array([0, 1, 2, 3])}, "node_types.pt has 4 numbers, but node_info.pkl has 5 nodes"),
            ({"node_types.pt": np.array([0, 1, 2, 3, 4])}, "node_types.pt has ids from 0 to 4, not 0 to 3"),
            ({"node_types.pt": np.array([0, 1, 2, 3, 2.5])}, "numbers that are no ids"),
            ({"edge_index.pt": np.array([[0, 5], [1, 1]])}, "edge_index.pt has ids from 0 to 5, not 0 to 4"),
            ({"edge_index.pt": np.array([[0, -1], [1, 1]])}, "ids from -1"),
            ({"edge_index.pt": np.array([0, 1])}, "edge_index.pt is 2, not 2 x any"),
            ({"edge_types.pt": np.array([0])}, "edge_types.pt has 1 numbers, but edge_index.pt has 6 edges"),
            ({"edge_types.pt": np.array([0, 0, 0, 0, 0, 4])}, "edge_types.pt has ids from 0 to 4, not 0 to 3"),
            ({"node_info.pkl": [1]}, "node_info.pkl is not a dict of nodes by id"),
            ({"node_info.pkl": {**MAG, 9: MAG[0]}, "node_types.pt": np.zeros(6, np.int64)}, "has no node 5, but"),
            ({"node_info.pkl": {**MAG, 0: {"source_id": 1}}}, "node 0 has a key 'source_id'"),
            ({"node_info.pkl": {**MAG, 0: {"raw": b"x"}}}, "node 0: a value of type bytes"),
            ({"node_info.pkl": b"\x80\x04cposix\nsystem\n."}, "node_info.pkl: refused, since it asks for posix.system"),
            ({"node_info.pkl": b"\x80\x04}"}, "processed/node_info.pkl: cannot be read"),
            ({"edge_types.pt": b"x"}, "processed/edge_types.pt: not a zip file"),
            ({"edge_type_dict.pkl": {1: "x"}}, "edge_type_dict.pkl is not a dict of names by id"),
            ({"edge_type_dict.pkl": {0: "x", 1: "x"}}, "a name that is no text, empty or there twice"),
        ],
    )  # fmt: skip
    def test_files_that_do_not_fit_together(self, tmp_path: Path, change: dict[str, Any], message: str) -> None:
        files = graph_files(MAG, MAG_NODE_TYPES, MAG_EDGES) | change
        assert message in self.refuse(tmp_path, "mag", files)

    def test_a_node_that_is_larger_than_any_machine(self, tmp_path: Path) -> None:
        bomb: list[Any] = []
        for _ in range(60):
            bomb = [bomb, bomb]
        assert "node 0: more than 10,000,000 values" in self.refuse(
            tmp_path, "mag", graph_files({**MAG, 0: {"x": bomb}}, MAG_NODE_TYPES, MAG_EDGES)
        )
        ring: list[Any] = []
        ring.append(ring)
        assert "node 0: more than" in self.refuse(
            tmp_path, "mag", graph_files({**MAG, 0: {"x": ring}}, MAG_NODE_TYPES, MAG_EDGES)
        )

    def test_a_damaged_archive(self, tree: Path, tmp_path: Path) -> None:
        data = (tree / "skb" / "prime" / "processed.zip").read_bytes()
        (tmp_path / "prime").mkdir()
        for damaged in (data[: len(data) // 2], data[:200] + b"\0" * 50 + data[250:], b"not a zip"):
            (tmp_path / "prime" / "processed.zip").write_bytes(damaged)
            with pytest.raises(ExportError, match=r"processed\.zip"):
                export_stark("prime", place("prime", tmp_path), tmp_path / "out")
            assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize(
        ("answers", "splits", "message"),
        [
            ("[5]", {}, r"stark_qa\.csv: line 2: answer 5 is not a node of the graph"),
            ("[-1]", {}, "answer -1 is not a node"),
            ("__import__('os').system('true')", {}, "answer __import__"),
            ("[0, [1]]", {}, "not a list of ids"),
            ("[3]", {"test": [0, 7]}, r"test\.index: line 2: '7' is not a question's id"),
            ("[3]", {"test": [0, 0]}, r"test\.index: line 2: '0' is in the split twice"),
        ],
    )  # fmt: skip
    def test_questions_of_another_graph(
        self, tmp_path: Path, answers: str, splits: dict[str, list[int]], message: str
    ) -> None:
        root = tmp_path / "data"
        write_archive(root / "mag" / "processed.zip", "processed", graph_files(MAG, MAG_NODE_TYPES, MAG_EDGES))
        write_questions(root / "mag", [(0, "Which?", answers)], splits)
        with pytest.raises(ExportError, match=message):
            export_stark("mag", place("mag", root), tmp_path / "out")

    def test_an_archive_without_a_graph(self, tmp_path: Path) -> None:
        files = graph_files(MAG, MAG_NODE_TYPES, MAG_EDGES)
        message = self.refuse(tmp_path, "mag", files, "elsewhere")
        assert "processed.zip: no processed/node_info.pkl in it" in message


def test_values_that_json_does_not_have(tmp_path: Path) -> None:
    odd = {"set": {3, 1, 2}, "tuple": (1, (2.5,)), "keys": {1: "a", 2.5: "b", None: "c"}, "inf": [float("inf")],
           "big": 2**70, "flag": np.bool_(True), "half": np.float16(0.5), "pair": "\ud83d\ude00"}  # fmt: skip
    files = graph_files({0: odd}, [0], [])
    write_archive(tmp_path / "mag" / "processed.zip", "processed", files)
    export = export_stark("mag", place("mag", tmp_path), tmp_path / "out")
    assert export.node(0)["attributes"] == {
        "source_id": 0, "set": [1, 2, 3], "tuple": [1, [2.5]], "keys": {"1": "a", "2.5": "b", "null": "c"},
        "inf": [None], "big": 2**70, "flag": True, "half": 0.5, "pair": "\U0001f600",
    }  # fmt: skip
    assert check(export.path) == []


def test_gold_that_is_no_candidate_is_kept_and_counted(tmp_path: Path) -> None:
    write_archive(tmp_path / "mag" / "processed.zip", "processed", graph_files(MAG, MAG_NODE_TYPES, MAG_EDGES))
    write_questions(tmp_path / "mag", [(0, "Which?", "[0, 3]")], {"test": [0]})
    export = export_stark("mag", place("mag", tmp_path), tmp_path / "out")
    assert [q["answer_ids"] for q in export.queries()] == [[0, 3]]
    assert export.manifest["source"]["notes"] == {"questions with gold that is no candidate": 1}


@pytest.mark.parametrize("name", NAMES)
def test_the_graphs_that_real_torch_wrote(name: str, tmp_path: Path) -> None:
    root = shared("stark_format")
    found = place(name, root)
    export = export_stark(name, found, tmp_path / "out")
    assert check(export.path) == []
    with zipfile.ZipFile(found.processed) as archive:
        folder = AMAZON_FOLDER if name == "amazon" else "processed"
        import pickle

        nodes = pickle.loads(archive.read(f"{folder}/node_info.pkl"))
    records = list(export.nodes())
    assert len(records) == len(nodes)
    for record in records:
        assert {key: value for key, value in record["attributes"].items() if key != "source_id"} == json.loads(
            json.dumps(as_json(nodes[record["node_id"]]))
        )
    figures = {"prime": (2522, 8461), "mag": (299, 1456), "amazon": (248, 1591)}
    assert (export.schema["nodes"], export.schema["edges"]) == figures[name]


@pytest.mark.parametrize("name", NAMES)
def test_the_real_questions(name: str, tmp_path: Path) -> None:
    from exporter.stark.questions import StarkQuestions

    qa = shared("stark_qa") / name
    questions = StarkQuestions(qa, lambda _: True, lambda _: True)
    rows = list(questions.read(None))
    expected = DATASETS[name].expected
    assert questions.synthesised == expected.questions
    assert {split: count for split, count in questions.splits.items() if split != "human"} == {
        split: expected.splits[split] for split in ("train", "val", "test")
    }
    assert all(len(set(row["answer_ids"])) == len(row["answer_ids"]) for row in rows)
    assert (
        sum("\n" in row["query"] for row in rows if row["split"] != "human")
        == {"prime": 12, "mag": 0, "amazon": 6}[name]
    )
