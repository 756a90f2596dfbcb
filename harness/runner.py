"""Runs: every question asked by workers side by side, each attempt ledgered, retried by policy, resumable.

`execute_all` is the whole life of run folders: made or recovered, the sandbox probed, the open attempts worked off.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

import sandbox
from harness.budget import Spending
from harness.errors import ProbeFailed
from harness.runconfig import Listener, RunConfig, RunOutcome
from harness.rundir import RunFolder, open_run
from harness.session import Run, Session
from harness.tools.kit import sandboxes_for


def execute(config: RunConfig, listener: Listener) -> RunOutcome:
    """Run or resume one run; `execute_all` with a single one."""
    return execute_all([(config, listener)])[0]


def execute_all(parts: Sequence[tuple[RunConfig, Listener]]) -> list[RunOutcome]:
    """Run or resume several runs side by side, their questions interleaved; returns when every due attempt has ended.

    The workers and the budget (the first run's) and the memory for sandboxes are shared; so that a partial run is
    comparable, the first question is asked in every run, then the second. After Ctrl-C the state is saved and the
    outcomes say `interrupted`. Raises UserError (a folder), ProbeFailed, QuotaExhausted, KeyRejected,
    SandboxUnavailable.
    """
    with contextlib.ExitStack() as stack:
        runs, spending = [], Spending(parts[0][0].budget)
        for config, listener in parts:
            stack.callback(listener.closed)
            folder = stack.enter_context(
                open_run(config.out, config.manifest(), resume=config.resume, may_change=config.names)
            )
            if config.resume:
                folder.update_manifest(budget=vars(config.budget))  # besides the address, what a resume may change
            for sentence in folder.recover():
                listener.notice(sentence)
            if config.resume and (sentence := folder.record_server(config.profile, config.served)):
                listener.notice(sentence)
            if config.sandboxes is not None:
                listener.notice(f"probing the isolation of the {config.sandboxes.kind} sandbox")
                _probe(config, config.sandboxes, folder)
            runs.append(Run(config, folder, listener, spending))
        session = Session(runs, spending)
        interrupted = session.work()
        return [run.outcome(interrupted) for run in runs]


def _probe(config: RunConfig, backend: sandbox.Backend, folder: RunFolder) -> None:
    """Try the sandbox's isolation before the first question; the results go into the manifest."""
    canary = config.export.manifest.get("canary")
    opens = sandboxes_for(config.mode.tools, config.mode.view, backend)
    results = sandbox.probe(opens, config.spec({"run": folder.path.name}), [canary] if canary else [])
    folder.update_manifest(probe=[vars(result) for result in results], probed=time.time())
    failed = [result for result in results if not result.passed]
    if failed:
        what = "; ".join(f"{result.name}: {result.detail}" for result in failed)
        raise ProbeFailed(f"the {backend.kind} sandbox does not isolate: {what}", "see `harness doctor`")
