"""`harness import`: runs made elsewhere, as a run folder."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.options import data_dir_option
from harness.cli.output import notice
from harness.errors import UserError
from harness.foreign import read_sessions
from harness.foreign.write import Places, write_run
from harness.graphs import data_directory, open_graph
from harness.questions import load_questions
from harness.rundir import check_folder
from harness.text import count_of


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option("--graph", required=True, metavar="GRAPH", help="The graph that was asked about.")
@click.option("--queries", type=click.Path(path_type=Path), metavar="FILE", help="Questions, if not the graph's own.")
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="DIR", help="The run folder to make.")
@click.option("--graph-dir", metavar="DIR", help="Where the agent had the graph; read as /graph.")
@click.option("--scratch-dir", metavar="DIR", help="Where the agent worked; read as /scratch.")
@data_dir_option
@click.pass_context
def command(
    ctx: click.Context, files: tuple[Path, ...], graph: str, queries: Path | None, out: Path, graph_dir: str | None,
    scratch_dir: str | None, data_dir: Path | None,
) -> None:  # fmt: skip
    """Make a run folder of runs made elsewhere, to audit, score and compare them.

    Reads ARK's result files and the session files of Pi and Codex; folders are searched for them. A session belongs to
    the question whose id is the file's name (ARK), or whose text is in its prompt. Several sessions of a question are
    its attempts in the order of their times. Node ids must be those of the graph.

    \b
    Example:
      $ harness import --graph biogo --graph-dir /data/biogo --out runs/pi ~/.pi/agent/sessions/--work--
    """
    check_folder(out, resume=False)
    opened = open_graph(graph, data_directory(data_dir), notice)
    questions = load_questions(opened.export, splits=("all",), file=queries)
    paths = sorted(path for file in files for path in ([file] if not file.is_dir() else _below(file)))
    if not paths:
        raise UserError(f"no files in {', '.join(map(str, files))}", "they end in .json or .jsonl")
    found = [(path, *read_sessions(path)) for path in paths]
    formats = {form for _, form, _ in found}
    if len(formats) > 1:
        raise UserError(f"files of several formats: {', '.join(sorted(formats))}", "import each into a run of its own")
    sessions = [(str(path), session) for path, _, several in found for session in several]
    imported = write_run(
        out, opened.export, opened.name, questions, sessions, formats.pop(), Places(graph_dir, scratch_dir),
        ctx.find_root().meta.get("harness.command", ()),
    )  # fmt: skip
    for name in imported.unmatched:
        notice(f"{name} is left out: it answers no question of {opened.name}")
    click.echo(f"{out}: {count_of(imported.attempts, 'attempt')}")


def _below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*.json*") if path.suffix in (".json", ".jsonl") and path.is_file()]
