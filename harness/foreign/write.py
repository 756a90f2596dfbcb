"""Foreign sessions as a run folder over one of our exports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from exporter import Export
from harness import __version__
from harness.answer import Answer as ValidAnswer
from harness.answer import Parsed, parse_answer, validate
from harness.errors import UserError
from harness.events import trajectory_path
from harness.foreign.session import ForeignCall, ForeignTurn, Session
from harness.ledger import AttemptRecord, StopReason, Times, total_usage
from harness.modes import Agents, Answer, Context, Limits, Output, Sandbox
from harness.questions import Question, QuestionSet, digest
from harness.rundir import open_run
from harness.text import count_of
from harness.trajectory import TrajectoryWriter
from sandbox import GRAPH, SCRATCH


@dataclass(frozen=True)
class Places:
    """Folders that the foreign agent had, to be read as ours: the graph's and the one it worked in."""

    graph: str | None = None
    scratch: str | None = None

    def ours(self, text: str) -> str:
        """The text with these folders named as in our sandbox."""
        for theirs, name in ((self.graph, GRAPH), (self.scratch, SCRATCH)):
            if theirs:
                text = text.replace(theirs.rstrip("/"), name)
        return text


@dataclass(frozen=True)
class Imported:
    """What became of the files: attempts in the run, and sessions that answer no question of the graph."""

    attempts: int
    unmatched: tuple[str, ...]


def write_run(
    out: Path,
    export: Export,
    graph: str,
    questions: QuestionSet,
    sessions: Sequence[tuple[str, Session]],
    form: str,
    places: Places,
    command: Sequence[str] = (),
) -> Imported:
    """Make the run folder `out` of sessions (each with the name of its file). Raises UserError."""
    matched: list[tuple[Question, Session]] = []
    unmatched = []
    for name, session in sessions:
        question = _question(session, questions.questions)
        if question is None:
            unmatched.append(name)
        else:
            matched.append((question, session))
    if not matched:
        raise UserError(
            f"of {count_of(len(sessions), 'session')} none answers a question of {graph}",
            "name the right graph, or give the questions with --queries FILE",
        )
    asked = [question for question in questions.questions if any(question.id == other.id for other, _ in matched)]
    chosen = QuestionSet(tuple(asked), questions.source, digest(asked))
    matched.sort(key=lambda pair: pair[1].started)
    mode = _mode(form, matched, places)
    most_ids = Answer().max_ids
    model = next((session.model for _, session in matched if session.model), f"unknown ({form})")
    manifest = {
        "graph": graph,
        "export": {
            "path": str(export.path.resolve()), "digest": export.digest, "nodes": export.node_count,
            "edges": export.schema["edges"],
        },
        "mode": mode,
        "model": {"name": model},
        "questions": {
            "source": chosen.source, "sha256": chosen.sha256, "ids": [question.id for question in chosen.questions],
        },
        "workers": 1, "retry": "none", "sandbox": {"kind": form.lower()}, "command": list(command),
        "versions": {"kgshell": __version__},
    }  # fmt: skip
    numbers: dict[tuple[str, int], int] = {}
    with open_run(out, manifest, resume=False) as folder:
        for question, session in matched:
            key = (question.id, session.agent)
            numbers[key] = numbers.get(key, -1) + 1
            writer = _AttemptWriter(out, export, question, session, numbers[key], mode, most_ids, places.ours)
            folder.ledger.append(writer.write())
    return Imported(len(matched), tuple(unmatched))


def _question(session: Session, questions: Sequence[Question]) -> Question | None:
    """The question that a session answers: by its id, else the longest one whose text is in the prompt."""
    for question in questions:
        if question.id == session.query_id:
            return question
    prompt = " ".join(session.prompt.split())
    found = [question for question in questions if " ".join(question.text.split()) in prompt]
    return max(found, key=lambda question: len(question.text), default=None)


def _mode(form: str, matched: Sequence[tuple[Question, Session]], places: Places) -> dict[str, Any]:
    """What the manifest says of the mode: what the sessions tell, and our defaults for what they don't."""
    question, session = matched[0]
    tools = sorted({call.name for _, other in matched for turn in other.turns for call in turn.calls})
    return {
        "name": form.lower(),
        "summary": f"imported from {form}",
        "prompt": places.ours(session.prompt).replace(question.text, "$query"),
        "tools": tools,
        "limits": asdict(Limits()),
        "output": asdict(Output()),
        "context": asdict(Context()),
        "answer": asdict(Answer()),
        "agents": asdict(Agents(count=1 + max(other.agent for _, other in matched))),
        "sandbox": asdict(Sandbox()),
    }


class _AttemptWriter:
    def __init__(
        self, run: Path, export: Export, question: Question, session: Session, number: int, mode: Mapping[str, Any],
        most_ids: int, ours: Callable[[str], str],
    ) -> None:  # fmt: skip
        self.run, self.export, self.question, self.session = run, export, question, session
        self.number, self.mode, self.most_ids, self.ours = number, mode, most_ids, ours

    def write(self) -> AttemptRecord:
        """Write the trajectory; its line of the ledger."""
        session, mode = self.session, self.mode
        path = trajectory_path(self.question.id, session.agent, self.number)
        tools = [{"name": name, "description": "", "parameters": {}} for name in mode["tools"]]
        with TrajectoryWriter(self.run / path, self.run / "blobs") as log:
            log.write(
                "start", time=session.started, query_id=self.question.id, agent=session.agent, attempt=self.number,
                query=self.question.text, mode=mode["name"], prompt=self.ours(session.prompt), tools=tools,
            )  # fmt: skip
            for turn, reply in enumerate(session.turns, 1):
                self.turn(log, turn, reply)
            for text in session.left:
                log.write("notice", time=session.finished, turn=len(session.turns) + 1, text=self.ours(text))
            answer, stop = self.answer()
            log.write(
                "answer", time=session.finished, text=answer.text, ids=answer.ids, repairs=answer.repairs,
                rejected=answer.rejected,
            )  # fmt: skip
            log.write("end", time=session.finished, stop_reason=stop, limit=None, error=None)
        costs = [turn.cost for turn in session.turns]
        wall = max(0.0, session.finished - session.started)
        return AttemptRecord(
            self.question.id, session.agent, self.number, stop, answer.ids, turns=len(session.turns),
            usage=total_usage([vars(turn.usage) for turn in session.turns]),
            cost=sum(cost for cost in costs if cost is not None) if costs and None not in costs else None,
            times=Times(wall=wall, working=wall), started=session.started, finished=session.finished,
            trajectory=str(path), answer={"repairs": answer.repairs, "rejected": answer.rejected},
            counts={"calls": sum(len(turn.calls) for turn in session.turns)},
        )  # fmt: skip

    def turn(self, log: TrajectoryWriter, number: int, turn: ForeignTurn) -> None:
        for text in turn.said:
            log.write("notice", time=turn.time, turn=number, text=self.ours(text))
        log.write(
            "reply", time=turn.time, turn=number, text=turn.text, raw=turn.raw, usage=vars(turn.usage),
            calls=[{"id": call.id, "name": call.name, "arguments": self.ours(call.text)} for call in turn.calls],
            finish="tool_calls" if turn.calls else "stop", latency=0.0, waited=0.0, tries=1, notes=[],
        )  # fmt: skip
        for call in turn.calls:
            if call.output is not None:
                self.result(log, number, call, call.output)

    def result(self, log: TrajectoryWriter, number: int, call: ForeignCall, output: str) -> None:
        arguments: Mapping[str, Any] | None = call.arguments
        if arguments is not None:
            arguments = {name: self.ours(v) if isinstance(v, str) else v for name, v in arguments.items()}
        ran = {
            "exit_code": call.exit_code, "termination": "exit", "total_bytes": len(output.encode("utf-8", "replace")),
            "lines": output.count("\n"), "spill": None, "wall": 0.0, "cpu": 0.0, "memory": 0,
        }  # fmt: skip
        log.write(
            "result", time=call.time, turn=number, call_id=call.id, name=call.name, arguments=arguments,
            text=self.ours(output), error="malformed_arguments" if arguments is None else None,
            exec=ran if call.is_shell else None, cut=None, spill=None, blob=None,
        )  # fmt: skip

    def answer(self) -> tuple[ValidAnswer, StopReason]:
        """The session's ids, or those in its last words, validated as ever."""
        session = self.session
        text = session.turns[-1].text if session.turns else ""
        parsed = Parsed(list(session.ids)) if session.ids is not None else parse_answer(text)
        stop = session.stop
        if parsed.values is None and stop == "answered":
            stop = "no_answer"
        return validate(parsed, self.export, self.most_ids, text), stop
