"""Makes graphs of STaRK's shapes, of any size, in STaRK's format: types, relations, degrees, lengths of texts."""

from __future__ import annotations

import pickle
import random
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exporter.stark import DATASETS
from tests.support.stark_files import AMAZON_FOLDER, write_questions
from tests.support.torch_files import write_tensor

Ids = NDArray[np.int64]
Info = dict[int, dict[str, Any]]
Relation = tuple[int, int, int]  # head type, tail type, rows at full size

# Figures of the published graphs. MAG has the number of edges that STaRK's loader counts, twice what is stored.
NODES = {
    "prime": (17_080, 27_671, 11_169, 7_957, 2_516, 14_035, 15_311, 28_642, 4_176, 818),
    "mag": (1_104_554, 8_701, 59_469, 700_244),
    "amazon": (957_192, 75_000, 1_100, 2_250),
}
RELATIONS: dict[str, Sequence[Relation]] = {
    "prime": (
        (1, 1, 642_150), (3, 1, 1_728), (3, 1, 10_634), (3, 1, 32_760), (3, 1, 6_184), (3, 0, 61_350), (3, 0, 18_776),
        (3, 0, 5_136), (3, 3, 2_672_628), (0, 1, 167_482), (0, 0, 281_744), (0, 6, 2_386), (0, 6, 300_634),
        (3, 6, 129_568), (7, 1, 686_550), (9, 0, 4_608), (5, 1, 3_036_406), (5, 1, 39_774),
    ),
    "mag": ((0, 1, 2_000_000), (3, 3, 9_600_000), (3, 2, 14_500_000), (0, 3, 13_702_116)),
    "amazon": ((0, 0, 1_900_000), (0, 0, 900_000), (0, 1, 850_000), (0, 2, 900_000), (0, 3, 171_901)),
}  # fmt: skip


class Words:
    """Text at the cost of a slice: pieces of a long one, words by Zipf's law, some of it not ASCII."""

    def __init__(self, seed: int) -> None:
        chance = np.random.default_rng(seed)
        letters = np.array(list("etaoinshrdlucmfwypvbgké"))
        lengths = chance.integers(2, 12, 20_000)
        words = ["".join(chance.choice(letters, length)) for length in lengths]
        self._text = " ".join(words[number % 20_000] for number in chance.zipf(1.3, 800_000))
        self._chance = random.Random(seed)

    def __call__(self, length: int) -> str:
        start = self._chance.randrange(len(self._text) - length)
        return self._text[start : start + length]

    def about(self, mean: float) -> str:
        """Lengths as those of abstracts and reviews: many short, few long."""
        return self(min(int(self._chance.expovariate(1 / mean)) + 1, 100_000))


def make_graph(name: str, root: Path, scale: float = 1.0, seed: int = 1) -> Path:
    """Write a graph of the shape of `name`, `scale` times its size, below `root` as the dataset repository has it."""
    counts = [max(round(count * scale), 2) for count in NODES[name]]
    words = Words(seed)
    info: Info = {}
    for type_id, count in enumerate(counts):
        make = _MAKERS[name][type_id] if name != "prime" else _prime
        for _ in range(count):
            info[len(info)] = make(words, len(info), type_id)
    ends, types = _edges(name, counts, scale, seed)
    archive = root / "skb" / name / "processed.zip"
    archive.parent.mkdir(parents=True, exist_ok=True)
    folder = AMAZON_FOLDER if name == "amazon" else "processed"
    dataset = DATASETS[name]
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        with packed.open(f"{folder}/node_info.pkl", "w", force_zip64=True) as file:
            pickle.dump(info, file, 4)
        arrays = {"edge_index": ends, "edge_types": types, "node_types": np.repeat(np.arange(len(counts)), counts)}
        for stem, array in arrays.items():
            with packed.open(f"{folder}/{stem}.pt", "w", force_zip64=True) as file:
                write_tensor(file, array)
        for stem, names in (("node_type_dict", dataset.node_types), ("edge_type_dict", dataset.relations)):
            packed.writestr(f"{folder}/{stem}.pkl", pickle.dumps(dict(enumerate(names))))
    _questions(root / "qa" / name, name, counts, scale, words)
    return root


def _edges(name: str, counts: Sequence[int], scale: float, seed: int) -> tuple[Ids, Ids]:
    """Ends and types, in the order of a shuffled source; PRIME's both ways."""
    chance = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(counts)])
    parts, types = [], []
    for number, (head, tail, rows) in enumerate(RELATIONS[name]):
        size = max(round(rows * scale) // (2 if name == "prime" else 1), 1)
        part = np.stack([_skewed(chance, counts[side], size) + starts[side] for side in (head, tail)])
        if name == "prime":
            part = np.concatenate([part, part[::-1]], axis=1)
        parts.append(part)
        types.append(np.full(part.shape[1], number))
    ends, kinds = np.concatenate(parts, axis=1), np.concatenate(types)
    order = chance.permutation(len(kinds))
    return ends[:, order], kinds[order]


def _skewed(chance: np.random.Generator, count: int, size: int) -> Ids:
    """Node numbers with degrees far from equal: a few hubs, many with few edges."""
    return (count * chance.random(size) ** 2.5).astype(np.int64)


def _prime(words: Words, node_id: int, type_id: int) -> dict[str, Any]:
    node_type = DATASETS["prime"].node_types[type_id]
    info: dict[str, Any] = {"id": str(node_id), "type": node_type, "name": words(24), "source": "NCBI"}
    if type_id == 1:
        info["details"] = {
            "query": info["name"], "_id": str(node_id), "_score": 17.4, "alias": [words(6), words(6)],
            "name": words(40),
            "summary": words.about(500), "type_of_gene": "protein-coding",
            "genomic_pos": {"chr": "1", "start": 5, "end": 9, "strand": -1},
            "generif": [{"pubmed": node_id, "text": words.about(150)} for _ in range(4)],
            "interpro": [{"desc": words(30), "id": "IPR1", "short_desc": words(10)}],
        }  # fmt: skip
    elif type_id == 3:
        keys = ("description", "half_life", "indication", "mechanism_of_action", "pharmacodynamics", "protein_binding")
        info["details"] = {key: words.about(250) for key in keys}
    elif type_id == 0:
        info["details"] = {
            "mondo_name": words(20),
            "mondo_definition": words.about(300),
            "orphanet_prevalence": float("nan"),
        }
    elif type_id in (2, 7, 8):
        info["details"] = {"definition": words.about(120)}
    return info


def _author(words: Words, node_id: int, _: int) -> dict[str, Any]:
    return {"id": node_id, "mag_id": 2_000_000_000 + node_id, "Rank": 18_000, "DisplayName": words(16),
            "LastKnownAffiliationId": -1, "PaperCount": 12, "CitationCount": node_id % 977, "type": "author",
            "new_id": node_id}  # fmt: skip


def _institution(words: Words, node_id: int, _: int) -> dict[str, Any]:
    return {"id": node_id, "mag_id": node_id, "Rank": 9_000, "DisplayName": words(28), "PaperCount": 500,
            "CitationCount": 7_000, "type": "institution", "new_id": node_id}  # fmt: skip


def _field(words: Words, node_id: int, _: int) -> dict[str, Any]:
    return {**_institution(words, node_id, 0), "Level": 2, "type": "field_of_study"}


def _paper(words: Words, node_id: int, _: int) -> dict[str, Any]:
    return {
        "id": node_id, "mag_id": 3_000_000_000 + node_id, "PaperRank": 20_000, "DocType": "Journal",
        "OriginalTitle": words(80), "BookTitle": "-1", "Year": 2015, "Date": "2015-02-11", "Publisher": words(20),
        "JournalId": node_id % 4_000, "ConferenceSeriesId": -1, "ConferenceInstanceId": -1, "ReferenceCount": 20,
        "PaperCitationCount": node_id % 91, "EstimatedCitationCount": 5, "OriginalVenue": words(30),
        "JournalRank": 9_000, "JournalDisplayName": words(24), "JournalPaperCount": 900, "JournalCitationCount": 8_000,
        "ConferenceSeriesDisplayName": "-1", "ConferenceInstancesDisplayName": "-1", "type": "paper",
        "new_id": node_id, "title": words(80), "abstract": words.about(1_100),
    }  # fmt: skip


def _product(words: Words, node_id: int, _: int) -> dict[str, Any]:
    number = node_id * 2_654_435_761 % 2**32  # so that counts differ from product to product
    reviews = 1 + int(-6 * np.log1p(-(number + 0.5) / 2**32))
    return {
        "review": [
            {"reviewerID": f"A{node_id}{k}", "summary": words(20), "style": float("nan"),
             "reviewText": words.about(300), "vote": float("nan"), "overall": 5.0, "verified": True,
             "reviewTime": "01 2, 2016"}
            for k in range(reviews)
        ],
        "qa": [
            {"questionType": "yes/no", "answerType": "Y", "question": words(50), "answer": words(60),
             "answerTime": "Jan 2, 2015"}
            for _ in range(number % 3)
        ],
        "color": ["red"], "asin": f"B{node_id:09d}", "title": words(60), "global_category": "Sports & Outdoors",
        "category": ["balls"], "price": float("nan"), "brand": words(10), "feature": [words(50), words(50)],
        "rank": float("nan"), "details": {"product_dimensions": "3 x 4 x 5 inches ; 2 pounds"},
        "description": [words.about(400)],
    }  # fmt: skip


def _named(words: Words, node_id: int, type_id: int) -> dict[str, Any]:
    return {f"{DATASETS['amazon'].node_types[type_id]}_name": f"{words(10)} {node_id}"}


_Maker = Callable[[Words, int, int], dict[str, Any]]
_MAKERS: dict[str, Sequence[_Maker]] = {
    "mag": (_author, _institution, _field, _paper),
    "amazon": (_product, _named, _named, _named),
}


def _questions(qa: Path, name: str, counts: Sequence[int], scale: float, words: Words) -> None:
    """Questions whose gold are candidates, in STaRK's proportions."""
    first = sum(counts[:3]) if name == "mag" else 0
    candidates = counts[3] if name == "mag" else counts[0]
    count = max(round(DATASETS[name].expected.questions * scale), 4)
    rows = [(number, words(120), str([first + number * 7 % candidates])) for number in range(count)]
    cut = {"train": range(count // 2), "val": range(count // 2, 3 * count // 4), "test": range(3 * count // 4, count)}
    write_questions(qa, rows, {split: list(ids) for split, ids in cut.items()})
