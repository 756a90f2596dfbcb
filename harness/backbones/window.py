"""What a model's own server says of it: how large its context window is, and which weights it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

_KEYS: Final = (
    "max_model_len",  # vLLM
    "context_length",  # OpenRouter, Together
    "context_window",  # Groq
    "max_context_length",  # LM Studio
    "n_ctx",  # llama.cpp
)
_WEIGHTS: Final = (
    "root",
    "parent",
)  # vLLM: what was loaded, whatever id it is served under; of an adapter also its base
_MEASURES: Final = ("n_params", "n_vocab", "n_embd", "size")  # llama.cpp
_TRAINED: Final = "n_ctx_train"  # llama.cpp: what the model could take, whatever the server was started with


def served_window(fetch: Callable[[str], Any], base_url: str, model: str) -> int | None:
    """Tokens that a request may have; None where the server doesn't say.

    `fetch` gets parsed JSON by URL, None where there is none. Asked in turn: the list of models, then what llama.cpp
    (`/props`) and Ollama (`/api/ps`, a model that is loaded) tell beside it.
    """
    listing = fetch("models")
    if (found := window_in(listing, model)) is not None:
        return found
    root = base_url.rstrip("/").removesuffix("/v1")
    props = fetch(f"{root}/props")
    settings = props.get("default_generation_settings") if isinstance(props, Mapping) else None
    if isinstance(settings, Mapping) and (found := _size(settings.get("n_ctx"))) is not None:
        return found
    loaded = fetch(f"{root}/api/ps")
    for entry in _entries(loaded, "models"):
        if model in (entry.get("name"), entry.get("model")):
            return _size(entry.get("context_length"))
    return window_in(listing, model, (_TRAINED,))


def window_in(listing: Any, model: str, keys: tuple[str, ...] = _KEYS) -> int | None:
    """The context window that a list of models gives for one of them."""
    for entry in _entries(listing, "data"):
        if entry.get("id") == model:
            meta = entry.get("meta")
            tables = [entry, meta] if isinstance(meta, Mapping) else [entry]
            sizes = [_size(table.get(key)) for table in tables for key in keys]
            return next((size for size in sizes if size is not None), None)
    return None


def weights_in(listing: Any, model: str) -> dict[str, Any]:
    """What a list of models says of the weights behind an id; empty where it says nothing but the id."""
    for entry in _entries(listing, "data"):
        if entry.get("id") == model:
            names = {key: entry.get(key) for key in _WEIGHTS}
            meta = entry.get("meta")
            sizes = {key: _size(meta.get(key)) for key in _MEASURES} if isinstance(meta, Mapping) else {}
            told = {key: name for key, name in names.items() if isinstance(name, str) and name not in ("", model)}
            return {**told, **{key: size for key, size in sizes.items() if size is not None}}
    return {}


def _entries(table: Any, key: str) -> list[Mapping[str, Any]]:
    entries = table.get(key) if isinstance(table, Mapping) else None
    return [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []


def _size(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
