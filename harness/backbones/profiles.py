"""Model profiles: what to ask an endpoint for, as TOML.

Built-in profiles are the files in `harness/models/`. A user's own are the tables `[models.NAME]` of config.toml; one
with a built-in's name is laid over it. `--set model.key=value` comes on top. A profile names the environment variable
that holds the key, never the key.
"""

from __future__ import annotations

import functools
import ipaddress
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import resources
from typing import Any, Literal
from urllib.parse import urlsplit

from harness.config import config_path, load_config
from harness.errors import UserError
from harness.prices import Prices
from harness.settings import LONGEST, SMALLEST_WINDOW, Unfit, build, check_range, merge
from harness.suggest import hint

DEFAULT_MODEL = "gpt-6-luna"
UNKNOWN_WINDOW = 128_000  # tokens, where neither a profile nor a server says


@dataclass(frozen=True)
class Profile:
    """One model at one endpoint. Times in seconds, sizes in tokens; None leaves a parameter out of the request."""

    name: str
    model: str
    api: Literal["chat", "responses", "prompted"] = "chat"  # prompted: chat, for models that weren't taught tools
    endpoint: str | None = "https://api.openai.com/v1"  # None: whoever answers is not behind HTTP
    key_variable: str | None = "OPENAI_API_KEY"  # None: the endpoint needs no key
    window: int | None = None  # None: what the server says, else UNKNOWN_WINDOW
    effort: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    max_output: int | None = None
    parallel_tool_calls: bool | None = None
    extra_body: dict[str, Any] = field(default_factory=dict)  # further fields of the request, over ours
    stream: bool = False  # have replies streamed: a server or proxy that hangs is found out after `idle_timeout`
    idle_timeout: float = 120.0  # between two pieces of a stream
    prices: Prices = field(default_factory=Prices)
    timeout: float = 900.0  # one request, from sending to the last byte
    connect_timeout: float = 15.0
    tries: int = 10  # requests sent at most for one reply
    backoff: float = 1.0  # before the second try; doubles up to `backoff_max`
    backoff_max: float = 60.0
    max_wait: float = 6 * 3600.0  # a longer Retry-After is taken as a refusal

    def __post_init__(self) -> None:
        if self.endpoint is not None:
            _check_endpoint(self.endpoint)
        if taken := {"messages", "input", "tools", "stream"} & self.extra_body.keys():
            raise Unfit(f"extra_body can't hold {', '.join(sorted(taken))}", "the harness sets these itself")
        if self.api == "responses" and self.seed is not None:
            raise Unfit("seed is no parameter of the responses API", "leave it out, or --set model.api=chat")
        check_range(self, "window", least=SMALLEST_WINDOW)
        check_range(self, "max_output", "tries", least=1)
        check_range(self, "temperature", least=0, most=2)
        check_range(self, "top_p", above=0, most=1)
        check_range(self, "timeout", "connect_timeout", "idle_timeout", above=0, most=LONGEST)
        check_range(self, "backoff", "backoff_max", "max_wait", least=0, most=LONGEST)

    def as_dict(self) -> dict[str, Any]:
        """Plain tables and values for manifests and listings; never a key."""
        return asdict(self)

    @property
    def needs_key(self) -> bool:
        """Whether a request can't be sent without a key."""
        return self.key_variable is not None and self.endpoint is not None and not is_loopback(self.endpoint)

    @property
    def has_key(self) -> bool:
        """Whether the key variable is set."""
        return bool(self.key_variable and os.environ.get(self.key_variable, "").strip())


def profile_names() -> list[str]:
    """Every profile there is, built-in or the user's, sorted. Raises UserError for a config that can't be read."""
    return sorted({*_built_in_names(), *user_tables()})


def load_profile(
    name: str,
    *,
    base_url: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    others: Sequence[str] = (),
) -> Profile:
    """Resolve a profile. `overrides` are the keys under `model.` of `--set`.

    With `base_url` a name that is no profile is taken as the endpoint's own model id. Raises UserError, which names
    the profiles there are and `others`.
    """
    user = user_tables()
    known = name in user or name in _built_in_names()
    if not known and base_url is None:
        raise UserError(
            f"unknown model '{name}'",
            hint(name, [*profile_names(), *others], "models") + "; with --base-url URL any id that the endpoint knows",
        )
    layers = [
        {"name": name, "model": name},
        _built_in(name) if name in _built_in_names() else {},
        user.get(name, {}),
        {} if base_url is None else {"endpoint": base_url},
        overrides or {},
    ]
    return build(Profile, functools.reduce(merge, layers), f"model '{name}'")


def bare_profile(name: str, overrides: Mapping[str, Any] | None = None, **values: Any) -> Profile:
    """The profile of something that needs neither endpoint nor key. Raises UserError for overrides."""
    table = {"name": name, "model": name, "endpoint": None, "key_variable": None, "window": UNKNOWN_WINDOW, **values}
    return build(Profile, merge(table, overrides or {}), f"model '{name}'")


def read_key(profile: Profile) -> str | None:
    """The key from the environment, None where none is needed and none is set. Raises UserError, never naming it."""
    variable = profile.key_variable
    key = os.environ.get(variable, "").strip() if variable else ""
    if not key:
        if profile.needs_key:
            raise UserError(
                f"no key for model '{profile.name}': {variable} is not set",
                f"export {variable}=…, or --set model.key_variable=NAME (none: the endpoint needs no key)",
            )
        return None
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UserError(f"{variable} holds characters that no key has", "set it to the key alone")
    return key


def model_settings(given: dict[str, Any]) -> Mapping[str, Any]:
    """Take what concerns the model's profile out of the settings given with --set. Raises UserError."""
    table = given.pop("model", {})
    if not isinstance(table, Mapping):
        raise UserError("--set model takes a key of the profile", "for example: --set model.effort=low")
    return table


def _check_endpoint(url: str) -> None:
    """Raise Unfit for what is no address of an API, or holds what would be a secret in a manifest."""
    try:
        parts = urlsplit(url)
        plain = parts.scheme in ("http", "https") and parts.hostname and url.isascii() and url.isprintable()
        fits = bool(plain) and " " not in url and parts.port != 0
    except ValueError:  # a port out of range, half a bracket
        fits = False
    if not fits:
        shown = "" if set("@?#") & set(url) else f" '{url}'"  # a secret may stand behind these
        raise Unfit(f"endpoint{shown} is not an http or https URL", "for example http://localhost:8000/v1")
    if parts.username or parts.password:
        raise Unfit("endpoint holds a user name or password", "name an environment variable with key_variable instead")
    if parts.query or parts.fragment:  # where some providers take a key, and manifests hold the endpoint
        raise Unfit("endpoint holds a query string", "name a key by key_variable, other fields by extra_body")


def is_loopback(url: str) -> bool:
    """Whether a URL names this machine itself."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def user_tables() -> dict[str, dict[str, Any]]:
    """The `[models.NAME]` tables of the user's config. Raises UserError for a config that can't be read."""
    table = load_config().get("models", {})
    if not isinstance(table, dict) or not all(isinstance(entry, dict) for entry in table.values()):
        raise UserError(f"config file {config_path()}: models is not a table of tables", "write [models.NAME] tables")
    return table


def _built_in_names() -> list[str]:
    folder = resources.files("harness") / "models"
    return [item.name.removesuffix(".toml") for item in folder.iterdir() if item.name.endswith(".toml")]


def _built_in(name: str) -> dict[str, Any]:
    return tomllib.loads((resources.files("harness") / "models" / f"{name}.toml").read_text("utf-8"))
