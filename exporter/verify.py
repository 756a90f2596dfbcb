"""Verifies an export: hashes, layout, and that schema, index, nodes, edges and questions agree with each other."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from jsonschema import Draft202012Validator

from exporter.errors import ExportError
from exporter.fault import Fault
from exporter.layout import DATA_FORMAT, MANIFEST, OFFSETS, QUERIES, SCHEMA, SUMS
from exporter.sealed import file_faults, seal_faults
from exporter.source import Progress
from exporter.verify_edges import edge_faults
from exporter.verify_nodes import NodeCheck, index_faults
from exporter.view import LAST_LINES

_MOST_FAULTS = 20  # told of one file

_LAST = LAST_LINES["python"]


def check(path: Path, progress: Progress | None = None) -> list[Fault]:
    """Everything that is wrong with the export in the folder `path`; an empty list for a sound one.

    Reads every file once or twice, in bounded memory. Raises ExportError where `path` isn't an export at all.
    """
    faults, schema = _without_records(path, progress)
    if schema is None:
        return list(dict.fromkeys(faults))
    nodes = NodeCheck(path, schema)
    faults += _limited(nodes.faults())
    if nodes.complete:
        for relation in schema["relations"]:
            faults += _limited(edge_faults(path, relation, schema, nodes.type_ids))
    return list(dict.fromkeys(faults))


def check_files(path: Path) -> list[Fault]:
    """What `check` finds without parsing nodes and edges: enough before each run of an export that was sound once.

    Reads every file once. Raises ExportError as `check` does.
    """
    return _without_records(path, None)[0]


def _without_records(path: Path, progress: Progress | None) -> tuple[list[Fault], dict[str, Any] | None]:
    """The faults that don't need the records, and the schema if it and the manifest can be relied on."""
    if not (path / MANIFEST).is_file():
        raise ExportError(f"{path} is not an export: it has no {MANIFEST}", "make one with `harness export`")
    manifest, faults = _validated(path, MANIFEST, "manifest.schema.json")
    if manifest is not None:
        faults += file_faults(path, manifest["files"], progress)
        faults += _unknown_files(path, manifest["files"])
    faults += _limited(_part_faults(path))
    schema, schema_faults = _validated(path, SCHEMA, "schema.schema.json")
    faults += schema_faults
    if manifest is None or schema is None:
        return faults, None
    faults += _schema_faults(schema, manifest)
    faults += _data_format_faults(path)
    faults += index_faults(path, schema["nodes"])
    faults += _limited(_query_faults(path, manifest))
    return faults, schema


def _limited(faults: Iterable[Fault]) -> Iterator[Fault]:
    """At most so many faults of each file, and one that says there are more."""
    told: Counter[str] = Counter()
    for fault in faults:
        told[fault.file] += 1
        if told[fault.file] <= _MOST_FAULTS:
            yield fault
        elif told[fault.file] == _MOST_FAULTS + 1:
            yield Fault(fault.file, None, f"more than {_MOST_FAULTS} faults; the others are not listed")


def _validated(path: Path, file: str, schema_name: str) -> tuple[dict[str, Any] | None, list[Fault]]:
    """The JSON file, if it is as its JSON Schema says, and else the faults."""
    try:
        value = orjson.loads((path / file).read_bytes())
    except OSError as error:
        return None, [Fault(file, None, f"cannot be read: {error.strerror}")]
    except orjson.JSONDecodeError as error:
        return None, [Fault(file, error.lineno, f"not valid JSON: {error.msg}")]
    schema = orjson.loads((resources.files("exporter") / "schemas" / schema_name).read_bytes())
    errors = islice(Draft202012Validator(schema).iter_errors(value), _MOST_FAULTS)
    faults = [Fault(file, None, f"{error.json_path}: {error.message}") for error in errors]
    return (None if faults else value), faults


def _unknown_files(path: Path, entries: dict[str, Any]) -> Iterator[Fault]:
    for top in ("files", "queries"):
        for folder, folders, names in os.walk(path / top):
            for name in (*names, *(each for each in folders if (Path(folder) / each).is_symlink())):
                file = (Path(folder) / name).relative_to(path).as_posix()
                if file not in entries:
                    yield Fault(file, None, "not in the manifest")


def _part_faults(path: Path) -> Iterator[Fault]:
    """What was changed in the parts of the index that lie in the export; see `exporter.index.place`."""
    for sums in sorted((path / OFFSETS).parent.glob(f"*/{SUMS}")):
        yield from seal_faults(sums.parent, sums.parent.relative_to(path).as_posix())


class _Figure(NamedTuple):
    file: str
    name: str
    said: int
    found: int


def _schema_faults(schema: dict[str, Any], manifest: dict[str, Any]) -> Iterator[Fault]:
    """Where the schema contradicts itself or the manifest."""
    figures = [
        _Figure(MANIFEST, "nodes", manifest["nodes"], schema["nodes"]),
        _Figure(MANIFEST, "edges", manifest["edges"], schema["edges"]),
        _Figure(SCHEMA, "nodes", schema["nodes"], sum(item["count"] for item in schema["node_types"])),
        _Figure(SCHEMA, "edges", schema["edges"], sum(item["rows"] for item in schema["relations"])),
    ]
    for figure in figures:
        if figure.said != figure.found:
            yield Fault(figure.file, None, f"'{figure.name}' is {figure.said}, but should be {figure.found}")
    for key in ("node_types", "relations"):
        if [item["id"] for item in schema[key]] != list(range(len(schema[key]))):
            yield Fault(SCHEMA, None, f"the ids of '{key}' are not 0, 1, 2, … in order")
        if len({item["name"] for item in schema[key]}) < len(schema[key]):
            yield Fault(SCHEMA, None, f"a name occurs twice in '{key}'")
    told = [(item["name"], item["rows"]) for item in manifest["relations"]]
    if told != [(item["name"], item["rows"]) for item in schema["relations"]]:
        yield Fault(MANIFEST, None, "'relations' are not those of the schema")


def _data_format_faults(path: Path) -> Iterator[Fault]:
    try:
        lines = (path / DATA_FORMAT).read_text("utf-8").splitlines()
    except OSError as error:
        yield Fault(DATA_FORMAT, None, f"cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        yield Fault(DATA_FORMAT, None, "not UTF-8")
    else:
        if lines[-1:] != [_LAST]:
            yield Fault(DATA_FORMAT, len(lines), f"the last line is not '{_LAST}'")


def _query_faults(path: Path, manifest: dict[str, Any]) -> Iterator[Fault]:
    splits: Counter[str] = Counter()
    seen: dict[str, dict[str, Any]] = {}
    entries = manifest["files"]
    if QUERIES in entries and (path / QUERIES).is_file():
        with (path / QUERIES).open("rb") as file:
            for line, raw in enumerate(file, 1):
                try:
                    question = orjson.loads(raw)
                    problem = _question_problem(question, manifest, seen)
                except (orjson.JSONDecodeError, KeyError, TypeError) as error:
                    problem = f"not a question ({error})"
                if problem:
                    yield Fault(QUERIES, line, problem)
                else:
                    seen[question["id"]] = question
                    splits[question["split"]] += 1
    if dict(splits) != manifest["queries"]["splits"] or splits.total() != manifest["queries"]["count"]:
        yield Fault(MANIFEST, None, f"'queries' says {manifest['queries']}, but there are {dict(splits)}")


def _question_problem(
    question: dict[str, Any], manifest: dict[str, Any], seen: dict[str, dict[str, Any]]
) -> str | None:
    """What is wrong with a question. The same one may stand in several splits."""
    if not isinstance(question["query"], str) or not isinstance(question["split"], str):
        return "'query' and 'split' must be texts"
    earlier = seen.get(question["id"], {**question, "split": None})
    if question["split"] == earlier["split"] or {**question, "split": None} != {**earlier, "split": None}:
        return f"duplicate question id '{question['id']}'"
    for node_id in question["answer_ids"]:
        if not isinstance(node_id, int) or not 0 <= node_id < manifest["nodes"]:
            return f"answer {node_id!r} is not a node"
    return None if question["canary"] == manifest["canary"] else "the canary is not the manifest's"
