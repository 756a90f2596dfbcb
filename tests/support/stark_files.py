"""Little graphs in STaRK's on-disk form, laid out as in the Hugging Face repository, written without torch."""

from __future__ import annotations

import csv
import io
import pickle
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.torch_files import write_tensor

NAN = float("nan")
Info = dict[Any, dict[Any, Any]]
Edge = tuple[int, int, int]  # source, target, relation

PRIME_TYPES = (
    "disease",
    "gene/protein",
    "molecular_function",
    "drug",
    "pathway",
    "anatomy",
    "effect/phenotype",
    "biological_process",
    "cellular_component",
    "exposure",
)

PRIME: Info = {
    0: {
        "id": "9796",
        "type": "gene/protein",
        "name": "PHYHIP",
        "source": "NCBI",
        "details": {
            "query": "PHYHIP",
            "_id": "9796",
            "_score": 17.5,
            "entrez_id": 1,
            "alias": ["DYRK1AP3", NAN],
            "name": "long name",
            "summary": "",
            "type_of_gene": "protein-coding",
            "other_names": "nan",
            "interpro": {"id": "IPR1", "desc": "Domain"},
            "genomic_pos": [{"chr": "8", "start": 5}, {"chr": "9"}],
            "map_location": {"at": "8p21", "gone": NAN},
            "generif": [{"pubmed": 1, "text": "one\ttwo"}, {"pubmed": 2, "text": "three"}],
        },
    },
    1: {
        "id": "DB1",
        "type": "drug",
        "name": "A-1\ndrug",
        "source": "DrugBank",
        "details": {"description": "Heals.", "half_life": NAN, "weight": 2.0},
    },
    2: {"id": 3, "type": "disease", "name": "pain", "source": "MONDO", "details": {"mondo_id": 7, "x": NAN}},
    3: {"id": 4, "type": "disease", "name": "ache", "source": "MONDO"},
}
PRIME_NODE_TYPES = [1, 3, 0, 0]
# Every edge both ways; a pair twice; a self loop three times.
PRIME_EDGES: list[Edge] = [
    (1, 0, 3),
    (0, 1, 3),
    (1, 2, 6),
    (2, 1, 6),
    (2, 3, 10),
    (3, 2, 10),
    (2, 3, 10),
    (3, 2, 10),
    (3, 3, 10),
    (3, 3, 10),
    (3, 3, 10),
]

MAG: Info = {
    0: {
        "id": 0,
        "mag_id": np.int64(2_000_000_000),
        "DisplayName": "Ada-1 Lo",
        "PaperCount": 3,
        "CitationCount": np.int64(-1),
        "type": "author",
        "new_id": 0,
    },
    1: {
        "id": 1,
        "mag_id": np.int64(9),
        "DisplayName": "-1",
        "PaperCount": 1,
        "CitationCount": 0,
        "type": "institution",
    },
    2: {"id": 2, "mag_id": 5, "DisplayName": "Graphs", "Level": 2, "PaperCount": -1, "type": "field_of_study"},
    4: {
        "id": 4,
        "title": "On graphs-1",
        "abstract": "First,\r\nsecond.\n\n",
        "Date": "2019-02-11",
        "OriginalVenue": "-1",
        "JournalDisplayName": -1,
        "ConferenceSeriesDisplayName": "KG",
        "type": "paper",
    },
    3: {"id": 3, "title": np.str_("On shells"), "abstract": -1, "Date": -1, "OriginalVenue": "Shells", "type": "paper"},
}
MAG_NODE_TYPES = [0, 1, 2, 3, 3]
MAG_EDGES: list[Edge] = [(0, 1, 0), (0, 3, 3), (0, 4, 3), (4, 3, 1), (4, 2, 2), (3, 2, 2)]


def _review(number: int, vote: Any) -> dict[str, Any]:
    return {
        "reviewerID": f"R{number}",
        "summary": f"summary {number}",
        "style": NAN if number % 2 else {"Size:": " L"},
        "reviewText": NAN if number == 2 else f"text {number}",
        "vote": vote,
        "overall": 4.0,
        "verified": True,
    }


AMAZON: Info = {
    0: {
        "review": [_review(i, "1,024" if i == 5 else ("7" if i == 6 else NAN)) for i in range(30)],
        "qa": [{"question": "Does it fit?", "answer": "Yes.", "answerTime": NAN}],
        "color": ["red"],
        "asin": "B0",
        "title": "Ball \u2013 pack\tof 2",
        "category": ["balls"],
        "price": NAN,
        "brand": "Acme",
        "feature": ["light", "", "ASIN B00", "round"],
        "rank": NAN,
        "details": {"product_dimensions": "3 x 4 inches ; 2 pounds"},
        "description": [" A ball. ", "Round. "],
    },
    1: {
        "review": [],
        "qa": [],
        "asin": "B1",
        "title": "Half \ud83d of a pair",
        "price": "$12.50",
        "feature": [],
        "details": NAN,
        "description": [""],
    },
    2: {"brand_name": np.str_("Acme")},
    3: {"category_name": np.str_("balls")},
    4: {"color_name": np.str_("red")},
}
AMAZON_NODE_TYPES = [0, 0, 1, 2, 3]
AMAZON_EDGES: list[Edge] = [(0, 1, 0), (0, 1, 1), (1, 1, 0), (0, 2, 2), (0, 3, 3), (0, 4, 4)]
AMAZON_TYPES = ("product", "brand", "category", "color")
AMAZON_RELATIONS = ("also_buy", "also_view", "has_brand", "has_category", "has_color")
AMAZON_FOLDER = "processed/cache/brand-category-color"

Row = tuple[Any, str, str]  # id, query, answer_ids as it stands in the file


def graph_files(nodes: Info, node_types: Sequence[int], edges: Sequence[Edge]) -> dict[str, Any]:
    """The files of one graph, by name: an array for each .pt, plain data for each .pkl."""
    ends = np.array([[source for source, _, _ in edges], [target for _, target, _ in edges]], np.int64)
    types = np.array([relation for *_, relation in edges], np.int64)
    return {
        "node_info.pkl": nodes,
        "edge_index.pt": ends.reshape(2, -1),
        "edge_types.pt": types,
        "node_types.pt": np.array(node_types, np.int64),
    }


def packed(name: str, value: Any) -> bytes:
    """The bytes of one file; a value that is bytes already stays as it is."""
    if isinstance(value, bytes):
        return value
    if name.endswith(".pkl"):
        return pickle.dumps(value)
    file = io.BytesIO()
    write_tensor(file, value)
    return file.getvalue()


def write_archive(path: Path, folder: str, files: Mapping[str, Any]) -> Path:
    """A processed.zip with `files` in its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("processed/.DS_Store", b"\0")
        for name, value in files.items():
            archive.writestr(f"{folder}/{name}", packed(name, value))
    return path


def write_questions(
    qa: Path, rows: Sequence[Row], splits: Mapping[str, Sequence[int]], human: Sequence[Row] = ()
) -> None:
    """stark_qa/ and split/ below `qa`; split files have no line feed at their end."""
    for folder in ("stark_qa", "split"):
        (qa / folder).mkdir(parents=True, exist_ok=True)
    header = ("id", "query", "answer_ids")
    _write_csv(qa / "stark_qa" / "stark_qa.csv", [header, *rows])
    if human:
        marked = [(*row, "made for testing") for row in human]
        _write_csv(qa / "stark_qa" / "stark_qa_human_generated_eval.csv", [(*header, "answer_ids_source"), *marked])
    for split, ids in splits.items():
        (qa / "split" / f"{split}.index").write_text("\n".join(map(str, ids)), encoding="ascii")


def _write_csv(path: Path, rows: Sequence[Sequence[Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


SPLIT = {"train": [2], "val": [1], "test": [3, 0], "test-0.1": [3]}


def write_tree(root: Path) -> Path:
    """The three little graphs with questions, in the layout of the Hugging Face repository."""
    prime = graph_files(PRIME, PRIME_NODE_TYPES, PRIME_EDGES) | {"node_type_dict.pkl": dict(enumerate(PRIME_TYPES))}
    write_archive(root / "skb" / "prime" / "processed.zip", "processed", prime)
    write_archive(root / "skb" / "mag" / "processed.zip", "processed", graph_files(MAG, MAG_NODE_TYPES, MAG_EDGES))
    amazon = graph_files(AMAZON, AMAZON_NODE_TYPES, AMAZON_EDGES) | {
        "node_type_dict.pkl": dict(enumerate(AMAZON_TYPES)),
        "edge_type_dict.pkl": dict(enumerate(AMAZON_RELATIONS)),
    }
    write_archive(root / "skb" / "amazon" / "processed.zip", AMAZON_FOLDER, amazon)
    for name, answers in {"prime": (2, 3), "mag": (3, 4), "amazon": (0, 1)}.items():
        first, second = answers
        rows: list[Row] = [
            (0, f"Which one, {name}?", f"[{first}]"),
            (1, "Two lines,\nwith a comma?", f"[{second}, {first}]"),
            (2, 'And "quoted"?', f"[{second}, {second}]"),
            (3, "The last?", f"[{first}]"),
        ]
        write_questions(root / "qa" / name, rows, SPLIT, human=[(0, "By a person?", f"[{first}, {second}]")])
    return root
