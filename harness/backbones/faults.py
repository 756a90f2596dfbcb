"""What an endpoint's refusal means: try again, or give up and why.

Providers agree on status codes more than on wording, so codes come first; wordings are those of OpenAI, Azure, vLLM,
llama.cpp, Ollama, TGI, Mistral, Groq, xAI, DeepSeek, OpenRouter, and Anthropic's and Gemini's compatible endpoints.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from harness.backbones.limiter import LONGEST_WAIT, retry_after
from harness.errors import BackboneError, ContextOverflow, HarnessError, KeyRejected, QuotaExhausted, RequestRejected

RETRIED: Final = frozenset({408, 409, 425, 429})  # and every 5xx
LONGEST: Final = 400  # characters of a provider's message that are kept

_OVERFLOW_CODES: Final = frozenset({"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"})
_OVERFLOW: Final = re.compile(
    r"maximum context length|context[ _]length[ _](?:is )?exceeded"
    r"|exceeds? the (?:available )?context (?:size|window|length)"
    r"|prompt is too long|input is too long|input length (?:and `max_tokens` )?exceeds?|maximum input length"
    r"|exceeds? the maximum (?:number of tokens|prompt|input)|maximum prompt length|maximum model length"
    r"|(?:inputs?|prompt)`? tokens? .{0,60}must be|reduce the length of the (?:messages|prompt|input)"
    r"|context window (?:is )?(?:full|exceeded)|(?:prompt|input|request) (?:is )?too (?:large|long) for (?:the )?model"
    r"|request too large for|too many (?:input )?tokens in",
    re.IGNORECASE,
)
_REFUSAL_CODES: Final = frozenset({"content_filter", "content_policy_violation", "invalid_prompt"})
_REFUSAL: Final = re.compile(r"content management policy|flagged as potentially violating|_policy_violation|bio_policy")
_QUOTA_CODES: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
_QUOTA: Final = re.compile(
    r"insufficient[ _](?:quota|balance|credits?|funds)|credit balance is too low|billing hard limit|out of credits"
    r"|(?:requires|need) more credits",
    re.IGNORECASE,
)
_QUOTA_OR_RATE: Final = re.compile(r"exceeded your current quota", re.IGNORECASE)  # Gemini's wording for both
_KEY_LIKE: Final = re.compile(r"\bsk-[\w*-]{6,}")  # providers quote parts of the key that they reject
_SETTINGS: Final = "the endpoint does not take what is asked of it: check the model's settings (--set model.KEY=VALUE)"
_ADDRESS: Final = "check --model and --base-url: the endpoint has no such model, or its address has another path"
_HINTS: Final = {404: _ADDRESS, 405: _ADDRESS, **dict.fromkeys((301, 302, 303, 307, 308), "check --base-url")}
_RETRY_HINT: Final = re.compile(r"retry in ([0-9.]+) ?s\b|retryDelay\W+([0-9.]+)s\b", re.IGNORECASE)


class Refused(HarnessError):
    """The endpoint won't let the model answer this conversation, by its content policy."""


class Trouble(Exception):
    """A failure worth another try.

    `wait` is what the endpoint asks for, `shared` whether all workers are meant. `unreached`: there was no connection.
    """

    def __init__(
        self, message: str, *, wait: float | None = None, shared: bool = False, unreached: bool = False
    ) -> None:
        super().__init__(message)
        self.wait = wait
        self.shared = shared
        self.unreached = unreached


def from_status(status: int, body: bytes, headers: Mapping[str, str]) -> HarnessError | Trouble:
    """The exception for a reply with an error status. `headers` are looked up in lower case."""
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        parsed = body.decode("utf-8", "replace")
    return from_error(status, parsed, headers)


def from_error(status: int, body: Any, headers: Mapping[str, str]) -> HarnessError | Trouble:
    """The exception for an error given as parsed JSON."""
    message, codes = _read(body)
    text = f"status {status}: {message}" if message else f"status {status}"
    wait = retry_after(headers) or _hinted(body)
    overflow = not codes.isdisjoint(_OVERFLOW_CODES) or _OVERFLOW.search(message)
    if overflow and status not in (401, 403):
        return ContextOverflow(text)
    if not codes.isdisjoint(_REFUSAL_CODES) or _REFUSAL.search(" ".join((message, *codes))):
        return Refused(text)
    out_of_credit = not codes.isdisjoint(_QUOTA_CODES) or status == 402 or _QUOTA.search(message)
    if out_of_credit or (_QUOTA_OR_RATE.search(message) and wait is None):
        return QuotaExhausted(text, "add credit to the account, then go on with --resume")
    if status in (401, 403):
        return KeyRejected(
            text, "check the key in the variable that `harness models` names, and what it may be used for"
        )
    if status in RETRIED or status >= 500:
        return Trouble(text, wait=wait, shared=status == 429 or wait is not None)
    return RequestRejected(text, _HINTS.get(status, _SETTINGS)) if 300 <= status < 500 else BackboneError(text)


def _read(body: Any) -> tuple[str, set[str]]:
    """An error's message on one line, and its codes and types, in whichever form it comes."""
    if isinstance(body, list) and body:
        body = body[0]
    error = body.get("error") or body if isinstance(body, Mapping) else body
    if not isinstance(error, Mapping):
        return _line(error), set()
    message = error.get("message") or error.get("detail") or error.get("msg") or error
    return _line(message), {str(error[key]) for key in ("code", "type") if error.get(key)}


def _line(value: Any) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
    text = _KEY_LIKE.sub("[key]", " ".join(text.split()))
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _hinted(body: Any) -> float | None:
    found = _RETRY_HINT.search(body if isinstance(body, str) else orjson.dumps(body, default=str).decode())
    try:
        return min(float(found[1] or found[2]), LONGEST_WAIT) if found else None
    except ValueError:
        return None
