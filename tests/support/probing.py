"""The isolation probe, once for each kind of sandbox that the runs of one test process open.

A probe takes three seconds, and nearly every run of the tests opens the same sandbox on the same export. What the probe
itself finds and misses is the matter of tests/sandbox/test_probe.py; there, in processes of their own and for any
sandbox but plain bubblewrap's, it is always made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sandbox import Backend, ProbeResult, Spec
from sandbox.bwrap import BwrapBackend

Probe = Callable[[Backend, Spec, Sequence[str]], list[ProbeResult]]


class ProbedOnce:
    """A probe that remembers what it found: for the same bubblewrap, spec and canaries it isn't made again.

    Only a sandbox that withstood everything is remembered. Labels tell which run a sandbox is for, and change nothing
    about it.
    """

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._held: dict[str, list[ProbeResult]] = {}

    def __call__(self, backend: Backend, spec: Spec, canaries: Sequence[str]) -> list[ProbeResult]:
        if type(backend) is not BwrapBackend:
            return self._probe(backend, spec, canaries)
        key = repr((backend.describe(), replace(spec, labels={}), list(canaries)))
        if key not in self._held:
            results = self._probe(backend, spec, canaries)
            if not all(result.passed for result in results):
                return results
            self._held[key] = results
        return list(self._held[key])
