"""Sends request bodies to an OpenAI-compatible endpoint and keeps at it while that can help.

The `openai` SDK carries the bytes; its own retries are off, so that every request is counted, Retry-After binds all
workers, and the time spent waiting is known. The key stays in here and is taken out of whatever comes back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, cast
from urllib.parse import urlsplit

import httpx2
import openai

from harness.backbones import jsontext
from harness.backbones.faults import Trouble, from_status
from harness.backbones.jsontext import Body
from harness.backbones.limiter import ANNOUNCED, Limiter, backoff, clock
from harness.backbones.profiles import Profile, is_loopback, read_key
from harness.errors import BackboneError, EndpointUnreached, HarnessError, QuotaExhausted
from harness.text import duration

T = TypeVar("T")

_SMALL: Final = 10.0  # seconds for what is asked beside the conversation
_FIRST_TRIES: Final = 3  # at an endpoint that was never reached: more likely not there than restarting
LARGEST: Final = 64 * 1024 * 1024  # bytes of a reply; no model says as much


@dataclass(frozen=True)
class Answer(Generic[T]):
    """A reply that could be used. `waited` is every second before the request that brought it was sent."""

    value: T
    latency: float
    waited: float
    tries: int


class Endpoint:
    """One endpoint with one key, for many threads."""

    def __init__(self, profile: Profile, notice: Callable[[str], None] = lambda _: None) -> None:
        """Raises UserError where the profile needs a key and none is set."""
        self.profile = profile
        self.limiter = Limiter(notice)
        url = profile.endpoint or ""
        self.host = urlsplit(url).netloc
        self._reached = False  # whether there ever was a connection
        key = read_key(profile)
        self._secret = key.encode() if key else b""
        self._headers = {} if key else {"Authorization": openai.Omit()}
        timeout = openai.Timeout(profile.timeout, connect=profile.connect_timeout)
        # A proxy from the environment is not for this machine's own servers.
        own = openai.DefaultHttpxClient(trust_env=False, timeout=timeout) if is_loopback(url) else None
        self._client = openai.OpenAI(
            api_key=key or "none", base_url=url, max_retries=0, timeout=timeout, http_client=own
        )

    def __repr__(self) -> str:
        return f"Endpoint({self.profile.endpoint!r})"

    def ask(self, path: str, body: Body, time_left: float | None, parse: Callable[[bytes], T]) -> Answer[T]:
        """POST `body` and parse the reply, again until `parse` accepts one or the profile's tries are used up.

        `time_left` seconds end a request too, for good. `parse` raises Trouble for what another try may mend.
        Raises BackboneError and its kinds, and ContextOverflow, with `waited` set.
        """
        began = time.monotonic()
        pause, tries, most = 0.0, 0, self.profile.tries
        while tries < most:
            tries += 1
            self._wait(pause, began)
            sent = time.monotonic()
            succeeded = False
            try:
                value = parse(self._post(path, body, time_left))
                succeeded = True
            except Trouble as trouble:
                failure = trouble
            except HarnessError as error:
                error.waited = sent - began
                raise
            finally:
                self.limiter.leave(succeeded=succeeded)
            if succeeded:
                return Answer(value, latency=time.monotonic() - sent, waited=sent - began, tries=tries)
            if not self._reached:
                most = min(_FIRST_TRIES, self.profile.tries)
            pause = self._pause(failure, tries, most, sent, began)
        count = f"{tries} {'try' if tries == 1 else 'tries'}"
        hint = "check --base-url, and whether the server runs" if failure.unreached else ""
        kind = BackboneError if self._reached else EndpointUnreached
        given_up = kind(f"{self.host}: {failure} ({count})", hint)
        given_up.waited = time.monotonic() - began
        raise given_up

    def fetch(self, path: str) -> Any:
        """GET something small as parsed JSON, once; None where that fails."""
        deadline = time.monotonic() + _SMALL
        options: dict[str, Any] = {"headers": self._headers, "timeout": _SMALL, "follow_redirects": False}
        try:
            response = cast(
                httpx2.Response,
                self._client.get(
                    path,
                    cast_to=httpx2.Response,
                    options=cast(Any, options),
                    stream=True,
                    stream_cls=openai.Stream[Any],
                ),
            )
            self._reached = True
            with closing(response):
                value, _ = jsontext.loads(self.clean(self._read(response, deadline)))
        except (openai.OpenAIError, httpx2.HTTPError, BackboneError, ValueError):
            return None
        return value

    def clean(self, data: bytes) -> bytes:
        """Without the key, wherever it was echoed."""
        return data.replace(self._secret, b"[key]") if self._secret else data

    def close(self) -> None:
        """End waiting and close connections; a request under way that fails is not sent again."""
        self.limiter.stop()
        self._client.close()

    def _wait(self, pause: float, began: float) -> None:
        """Until a request may be sent. Raises BackboneError, with `waited` set, where everything is being stopped."""
        try:
            self.limiter.enter(pause)
        except BackboneError as error:
            error.waited = time.monotonic() - began
            raise

    def _pause(self, trouble: Trouble, tries: int, most: int, sent: float, began: float) -> float:
        """Seconds that this worker waits before the next try; a shared wait holds the others as well."""
        wait = trouble.wait
        if wait is not None and wait > self.profile.max_wait:
            asked = f"it asks to wait until {clock(wait)} ({duration(wait)}), longer than model.max_wait"
            error = QuotaExhausted(f"{self.host}: {trouble}; {asked}", "go on then with --resume")
            error.waited = time.monotonic() - began
            raise error
        grown = backoff(tries, self.profile.backoff, self.profile.backoff_max)
        pause = grown if wait is None else max(wait, grown if tries > 1 else 0.0)
        if trouble.shared:
            self.limiter.hold(pause, f"{self.host}: {trouble}")
            self.limiter.slow_down(sent, f"{self.host}: {trouble}")
        elif pause >= ANNOUNCED and tries < most:
            self.limiter.tell(f"{self.host}: {trouble}; try {tries + 1} of {most} in {pause:.0f} s")
        return pause

    def _post(self, path: str, body: Body, time_left: float | None) -> bytes:
        limit = min(self.profile.timeout, time_left if time_left is not None else self.profile.timeout)
        limit = max(limit, 0.001)
        deadline = time.monotonic() + limit
        try:
            response = cast(
                httpx2.Response,
                self._client.post(
                    path,
                    cast_to=httpx2.Response,
                    content=body,
                    options={
                        "headers": {**self._headers, "Content-Length": str(body.length)},
                        "timeout": openai.Timeout(
                            limit,
                            connect=min(limit, self.profile.connect_timeout),
                            read=min(limit, self.profile.idle_timeout) if self.profile.stream else limit,
                        ),
                        "follow_redirects": False,
                    },
                    stream=True,
                    stream_cls=openai.Stream[Any],
                ),
            )
            self._reached = True
            with closing(response):
                return self.clean(self._read(response, deadline))
        except openai.APIStatusError as error:
            self._reached = True
            headers = {name.lower(): value for name, value in error.response.headers.items()}
            raise self._named(from_status(error.status_code, self.clean(error.response.content), headers)) from None
        except (openai.APITimeoutError, httpx2.TimeoutException) as error:
            cause = error.__cause__ or error
            unreached = isinstance(cause, httpx2.ConnectTimeout)
            self._reached = self._reached or not unreached
            if time_left is not None and time.monotonic() >= deadline and limit < self.profile.timeout:
                raise BackboneError(f"{self.host}: no reply in the {limit:.0f} s that were left") from None
            raise Trouble(f"timed out ({type(cause).__name__})", unreached=unreached) from None
        except (openai.APIConnectionError, httpx2.HTTPError) as error:
            unreached = isinstance(error.__cause__ or error, httpx2.ConnectError)
            self._reached = self._reached or not unreached
            raise Trouble(self._why(error), unreached=unreached) from None

    def _read(self, response: httpx2.Response, deadline: float) -> bytes:
        received = bytearray()
        for chunk in response.iter_bytes():
            received += chunk
            if len(received) > LARGEST:
                raise BackboneError(f"{self.host}: a reply of more than {LARGEST} bytes")
            if time.monotonic() > deadline:  # a read timeout alone never ends a reply that trickles in
                raise httpx2.ReadTimeout("reply incomplete")
        return bytes(received)

    def _named(self, error: HarnessError | Trouble) -> HarnessError | Trouble:
        if isinstance(error, Trouble):
            return error
        return type(error)(f"{self.host}: {error}", error.hint)

    def _why(self, error: Exception) -> str:
        cause = error.__cause__ or error
        text = self.clean(str(cause).encode()).decode("utf-8", "replace")
        return f"connection failed: {text or type(cause).__name__}"
