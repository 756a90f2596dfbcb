"""A process of its own that serves one GGUF file on loopback until its standard input ends.

Run by its path, with the arguments FILE TOKENS (0: the file's own context window). Prints one line of JSON when it is
ready: {"url": …}, or {"error": …}.
"""

from __future__ import annotations

import json
import os
import sys


def main(file: str, tokens: str) -> None:
    """Serve until nobody listens any more."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads that wait don't spin: they may share the machine
    import xllamacpp  # noqa: PLC0415 - reads the environment

    params = xllamacpp.CommonParams()
    params.model.path = file
    params.model_alias = {"local"}
    params.n_ctx = int(tokens)
    params.n_parallel = 1
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.ui = False
    params.warmup = False
    params.verbosity = 0
    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        _say({"error": str(error)})
        return
    _say({"url": server.listening_address})
    sys.stdin.buffer.read()
    os._exit(0)  # without waiting for a reply that nobody wants


def _say(line: dict[str, str]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
