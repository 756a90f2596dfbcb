"""`harness view`: read runs in the browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from harness.cli.options import data_dir_option
from harness.cli.output import notice
from harness.systems import find_runs
from harness.view.server import ViewServer


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN|PARENT...", type=click.Path(path_type=Path))
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Default: one that is free.")
@click.option("--open", "open_browser", is_flag=True, help="Open the page in this machine's browser.")
@data_dir_option
def command(runs: tuple[Path, ...], port: int, open_browser: bool, data_dir: Path | None) -> None:
    """Read runs in the browser: their questions, and trajectories turn by turn.

    Serves a page on this machine's loopback address until Ctrl-C, and prints its URL, which holds a secret that is new
    each time. The page lists questions with filters (verdict, error class, mode, stop reason, text), shows an attempt
    as turns with what was cut and cleared, links ids in outputs to their node records, marks those that are gold, and
    puts two runs of a question side by side. A run that goes on is followed. Press ? in the page for its keys.

    To read a run on another machine, forward the port: `ssh -L N:127.0.0.1:N`, with `--port N` there.

    \b
    Example:
      $ harness view runs/biogo-files runs/biogo-tools
    """
    paths = list(dict.fromkeys(run for folder in runs for run in find_runs(folder)))
    with ViewServer(paths, port, data_dir) as server:
        click.echo(server.url)
        notice("Ctrl-C ends it")
        if open_browser and not webbrowser.open(server.url):
            notice("no browser was found: open the URL yourself")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            notice("ended")
