"""Every error this package raises on purpose.

    HarnessError
    ├── UserError              the user's mistake: one line, a hint, exit 2
    ├── InfrastructureError    recorded, retried by policy, never scored as an answer; exit 3 where it stops a run
    │   ├── BackboneError      the model's endpoint failed for good
    │   │   ├── QuotaExhausted the account has no credit left: the run stops with its state saved
    │   │   ├── KeyRejected    the endpoint rejects the key: the run stops
    │   │   ├── RequestRejected  the endpoint rejects a request as it is: not retried; stops a run that has no reply yet
    │   │   └── EndpointUnreached  nobody answers at the endpoint's address and nobody ever did: stops the run
    │   └── ProbeFailed        the isolation probe found a hole: the run doesn't start
    └── ContextOverflow        the provider says the request does not fit its window

The exporter's and the sandbox's own errors (`exporter.ExportError`, `sandbox.SandboxError`) carry a `hint` too.
"""

from __future__ import annotations


class HarnessError(Exception):
    """Base class. `hint` tells a person what to do next."""

    waited: float = 0.0  # seconds a backbone spent waiting before it raised this: not working time

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UserError(HarnessError):
    """The user asked for something that can't be: the message names what was given and what is possible."""


class InfrastructureError(HarnessError):
    """Something that is neither the user's nor the agent's doing failed."""


class BackboneError(InfrastructureError):
    """The model's endpoint failed and retries are used up, or its reply makes no sense.

    `counted_as` is the name in a record's counts of those by which no question was really asked.
    """

    counted_as: str = ""


class QuotaExhausted(BackboneError):
    """The provider refuses for lack of credit; retrying can't help."""


class KeyRejected(BackboneError):
    """The provider rejects the API key; retrying can't help."""


class RequestRejected(BackboneError):
    """The endpoint rejects this request as it is (no such model, an unknown parameter); retrying can't help."""

    counted_as = "request_rejected"


class EndpointUnreached(BackboneError):
    """There never was a connection to the endpoint: a mistyped address, or a server that doesn't run yet."""

    counted_as = "endpoint_unreached"


class ProbeFailed(InfrastructureError):
    """The sandbox does not isolate as promised."""


class ContextOverflow(HarnessError):
    """The request is larger than the model's context window, as the provider reports it."""
