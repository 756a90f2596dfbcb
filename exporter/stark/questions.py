"""STaRK's questions: synthesised ones in splits, and human-generated ones, from qa/<name>/."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from exporter.errors import ExportError
from exporter.inputs import InputFile
from exporter.questions import read_questions
from exporter.source import Progress
from exporter.stark.places import HUMAN, QUESTIONS, SPLITS

_MIXED = "the questions belong to another version of the graph: get both from one revision of the dataset repository"


class StarkQuestions:
    """The questions below `qa`. A synthesised question's id is STaRK's; a human one's has `human-` before it, since
    they count from 0 again. A question of test-0.1 stands in test too. After reading, the figures say what there was.
    """

    def __init__(self, qa: Path, is_node: Callable[[int], bool], is_candidate: Callable[[int], bool]) -> None:
        self._qa = qa
        self._is_node = is_node
        self._is_candidate = is_candidate
        self.inputs: list[dict[str, Any]] = []
        self.splits: Counter[str] = Counter()
        self.synthesised = 0
        self.gold_no_candidate = 0  # questions with gold that can't be an answer
        self.without_split = 0

    def read(self, progress: Progress | None) -> Iterator[dict[str, Any]]:
        """Split by split, in the order of the split files. Raises ExportError that names file and line."""
        questions = {question["id"]: question for question in self._questions(QUESTIONS, progress)}
        self.synthesised = len(questions)
        used: set[str] = set()
        for split in SPLITS:
            for identity in self._split(f"split/{split}.index", questions, progress):
                used.add(identity)
                yield self._counted({**questions[identity], "split": split})
        self.without_split = len(questions.keys() - used)
        for identity, question in questions.items():
            if identity not in used:
                yield self._counted(question)
        if (self._qa / HUMAN).is_file():
            for question in self._questions(HUMAN, progress):
                yield self._counted({**question, "id": f"human-{question['id']}", "split": "human"})

    def _counted(self, question: dict[str, Any]) -> dict[str, Any]:
        self.splits[question["split"]] += 1
        self.gold_no_candidate += not all(map(self._is_candidate, question["answer_ids"]))
        return question

    def _questions(self, name: str, progress: Progress | None) -> Iterator[dict[str, Any]]:
        path = self._qa / name
        with InputFile(path, progress) as file:
            for line, question in read_questions(path, file):
                gold = [int(text) for text in question["answer_ids"] if text.isdecimal()]
                for text in question["answer_ids"]:
                    if not text.isdecimal() or not self._is_node(int(text)):
                        raise ExportError(f"{path}: line {line}: answer {text} is not a node of the graph", _MIXED)
                yield {**question, "answer_ids": gold}
            self.inputs.append({**file.describe(), "file": name})

    def _split(self, name: str, questions: dict[str, Any], progress: Progress | None) -> list[str]:
        """The ids of a split, one a line, with or without a line feed behind the last."""
        path = self._qa / name
        if not path.is_file():
            return []
        ids: dict[str, None] = {}
        with InputFile(path, progress) as file:
            for number, raw in enumerate(file.lines(), 1):
                identity = raw.decode("utf-8", "replace").strip()
                if identity and (identity not in questions or identity in ids):
                    what = "is in the split twice" if identity in ids else "is not a question's id"
                    raise ExportError(f"{path}: line {number}: '{identity}' {what}", _MIXED)
                if identity:
                    ids[identity] = None
            self.inputs.append({**file.describe(), "file": name})
        return list(ids)
