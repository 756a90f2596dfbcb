"""Where a run's model was asked: a server that is started anew may be at another address in a later session.

A manifest's `model` says where the run began. Once a session found the server elsewhere, `servers` lists every address
in order, each with the number of attempts in the ledger when it was first used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any, Final

from harness.text import line

KEYS: Final = ("endpoint", "key_variable")  # of a profile: they say whom to ask, and change nothing in what is asked


def model_now(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A run's model as its last session asked it."""
    return {**manifest["model"], **_address(_servers(manifest)[-1])}


def moved(
    manifest: Mapping[str, Any], profile: Mapping[str, Any], served: Mapping[str, Any], attempts: int, now: float
) -> list[dict[str, Any]]:
    """The manifest's `servers` once a session asks `profile`; empty where that is where the last one asked.

    `served` is what the server says of the model, `attempts` how many the ledger has, `now` Unix seconds.
    """
    known = _servers(manifest)
    address = _address(profile)
    if address == _address(known[-1]):
        return []
    entry = {**address, "attempts": attempts, "since": now}
    return [*known, {**entry, "served": dict(served)} if served else entry]


def where_asked(manifest: Mapping[str, Any]) -> str:
    """Which attempts, counted from 1 in the ledger's order, were asked where; empty where it was one address."""
    known = _servers(manifest)
    parts = [
        f"{_numbers(first['attempts'] + 1, following['attempts'])} at {_named(first)}"
        for first, following in pairwise(known)
        if first["attempts"] < following["attempts"]
    ]
    if len(known) == 1:
        return ""
    return ", ".join([*parts, f"from attempt {known[-1]['attempts'] + 1:,} on at {_named(known[-1])}"])


def asked_at(manifest: Mapping[str, Any], number: int) -> str:
    """Where the ledger's attempt of this number, from 1, was asked; empty where the run had one address."""
    known = _servers(manifest)
    if len(known) == 1:
        return ""
    return _named([server for server in known if server["attempts"] < number][-1])


def other_weights(manifest: Mapping[str, Any], served: Mapping[str, Any]) -> Iterator[str]:
    """How the model that a server has under the run's model id differs from the run's, where both are known."""
    known: dict[str, Any] = {**(manifest.get("served") or {})}
    for server in _servers(manifest):
        known |= server.get("served") or {}
    for key in sorted(known.keys() & served.keys()):
        was, now = known[key], served[key]
        if _plain(was) != _plain(now):
            yield f"the server's model had {key} {was}, now {now}"


def _servers(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    first = {**_address(manifest["model"]), "attempts": 0, "since": manifest.get("created", 0)}
    return list(manifest.get("servers") or [first])


def _address(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: table.get(key) for key in KEYS}


def _named(server: Mapping[str, Any]) -> str:
    return line(str(server["endpoint"]))


def _numbers(first: int, last: int) -> str:
    return f"attempt {first:,}" if first == last else f"attempts {first:,} to {last:,}"


def _plain(value: Any) -> Any:
    """Weights may lie in another folder on another machine."""
    return PurePosixPath(value).name if isinstance(value, str) else value
