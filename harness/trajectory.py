"""One attempt's events, appended to a JSON Lines file as they happen. `harness.events` reads them back.

Every event has `schema_version`, `seq` (from 0, without gaps), `time` (Unix seconds) and `type`. Types and their fields
are in `harness/schemas/event.schema.json`. A file is written once, by one process; a crash can only tear its last line.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

from harness.events import SCHEMA_VERSION
from harness.files import append_whole, write_once
from harness.messages import Reply, ToolCall
from harness.observe import Observation


class TrajectoryWriter:
    """Appends events. `blobs` is the run's folder for large outputs."""

    def __init__(self, path: Path, blobs: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._blobs = blobs
        self._seq = 0
        self._lock = threading.Lock()  # the tools' socket writes from threads of its own

    def write(self, type_: str, **fields: Any) -> None:
        """Append one event; it is in the operating system's hands on return."""
        with self._lock:
            event = {"schema_version": SCHEMA_VERSION, "seq": self._seq, "time": time.time(), "type": type_, **fields}
            append_whole(self._fd, orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE))
            self._seq += 1

    def reply(self, turn: int, reply: Reply) -> None:
        """Append a `reply` event: what the model said, as the provider sent it and as the loop understands it."""
        self.write(
            "reply",
            turn=turn,
            text=reply.entry.text,
            calls=[{"id": call.id, "name": call.name, "arguments": call.arguments} for call in reply.entry.calls],
            raw=reply.entry.raw,
            finish=reply.finish,
            usage=vars(reply.usage),
            latency=reply.latency,
            waited=reply.waited,
            tries=reply.tries,
            notes=list(reply.notes),
        )

    def result(self, turn: int, call: ToolCall, arguments: dict[str, Any] | None, seen: Observation) -> None:
        """Append a `result` event. An output that the model saw in part is kept whole as a blob where it's at hand."""
        self.write(
            "result",
            turn=turn,
            call_id=call.id,
            name=call.name,
            arguments=arguments,
            text=seen.text,
            error=seen.error,
            exec=seen.exec,
            cut=seen.cut,
            spill=seen.spill,
            blob=self.blob(seen.whole) if seen.cut and seen.whole is not None else None,
        )

    def blob(self, data: bytes) -> str:
        """Keep `data` in the run folder by its sha256, once, and return the digest."""
        digest = hashlib.sha256(data).hexdigest()
        write_once(self._blobs / digest, data)
        return digest

    def close(self) -> None:
        """Put everything on the disk. Idempotent."""
        with self._lock:
            if self._fd >= 0:
                os.fsync(self._fd)
                os.close(self._fd)
                self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
