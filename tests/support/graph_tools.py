"""A little graph for the graph tools, and calls as a model makes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from exporter import export_tables
from exporter.index import Index
from harness.messages import ToolCall
from harness.modes import Output
from harness.observe import Observation
from harness.tools import Tool, Toolbox, ToolContext
from harness.tools.graph import Graph
from tests.support.graphs import write_tables

NODES = [
    {"id": "d0", "type": "drug", "name": "Aspirin", "text": "An analgesic; it also thins the blood."},
    {"id": "d1", "type": "drug", "name": "Warfarin", "text": "An anticoagulant that thins blood."},
    {"id": "g2", "type": "gene", "name": "PTGS1", "text": "Cyclooxygenase of the blood-forming tissues."},
    {"id": "g3", "type": "gene", "name": "PTGS2", "text": "Inducible cyclooxygenase, (pain) and fever."},
    {"id": "s4", "type": "disease", "name": "Migraine\nwith aura", "text": "Recurring headache: pain, nausea."},
    {"id": "s5", "type": "disease", "name": "", "text": "Pain of unknown origin."},
    {"id": "s6", "type": "disease", "name": "Stroke", "text": "Blood flow to the brain is cut off."},
    {"id": "g7", "type": "gene", "name": "Alone", "text": ""},
]
EDGES = [
    ("d0", "targets", "g2"),
    ("d0", "targets", "g3"),
    ("d0", "treats", "s4"),
    ("d0", "treats", "s5"),
    ("d0", "treats", "s5"),
    ("s6", "contraindicates", "d0"),
    ("s4", "contraindicates", "d0"),
    ("d0", "interacts", "d1"),
    ("d1", "interacts", "d0"),
    ("d0", "resembles", "d0"),
]


def small_graph(folder: Path) -> Graph:
    """The graph above, exported to `folder` and indexed."""
    export = export_tables(*write_tables(folder, NODES, EDGES), folder / "graph")
    return Graph(export, Index.open(export))


def no_sandbox() -> NoReturn:
    raise AssertionError("a graph tool asked for a sandbox")


def call(tools: Mapping[str, Tool], name: str, cap: int = 20_000, **arguments: Any) -> Observation:
    """What the model sees of one call."""
    context = ToolContext(no_sandbox, no_sandbox, Output(), cap, 60.0)
    return Toolbox(tools).dispatch(ToolCall("1", name, ""), arguments, context)
