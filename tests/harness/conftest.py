"""A run's configuration over the sample graph, for tests of whole runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from exporter import Export
from harness.modes import load_mode
from harness.questions import QuestionSet, load_questions
from harness.runconfig import RunConfig
from harness.settings import parse_assignments
from sandbox import Backend
from tests.support.running import Make
from tests.support.words import Turn, Words


@pytest.fixture
def make(biogo: Export, bwrap: Backend, tmp_path: Path) -> Make:
    """Makes a run's configuration over the sample's first questions."""
    questions = load_questions(biogo, splits=["all"])

    def config(turns: list[Turn] | Words, count: int = 3, settings: tuple[str, ...] = (), **changes: Any) -> RunConfig:
        chosen = QuestionSet(questions.questions[:count], questions.source, questions.sha256)
        given = RunConfig(
            graph="biogo",
            export=biogo,
            mode=load_mode("files", parse_assignments(settings)),
            profile={"name": "words"},
            backbone=turns if isinstance(turns, Words) else Words(turns),
            sandboxes=bwrap,
            questions=chosen,
            out=tmp_path / "run",
        )
        return replace(given, **changes)

    return config
