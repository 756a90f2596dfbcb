"""The context window: from the server where no profile says, else a guess that is told."""

from __future__ import annotations

from typing import Any

import pytest

from harness.backbones import make_backbone
from harness.backbones.window import window_in
from tests.support.server import ScriptedServer


@pytest.mark.parametrize(
    ("listing", "window"),
    [
        ({"data": [{"id": "m", "max_model_len": 4096}]}, 4096),
        ({"data": [{"id": "x", "n_ctx": 1}, {"id": "m", "meta": {"n_ctx": 8192, "n_ctx_train": 32_768}}]}, 8192),
        ({"data": [{"id": "m", "meta": {"n_ctx_train": 8192}}]}, None),
        ({"data": [{"id": "m", "context_length": 0}]}, None),
        ({"data": [{"id": "m", "context_length": True, "meta": 3}]}, None),
        ({"data": [3, None]}, None),
        ({"data": 7}, None),
        ([], None),
        (None, None),
    ],
)
def test_the_window_in_a_list_of_models(listing: Any, window: int | None) -> None:
    assert window_in(listing, "m") == window


VLLM = {"/v1/models": {"data": [{"id": "m", "max_model_len": 40_960}]}}
LLAMA = {
    "/v1/models": {"data": [{"id": "m", "meta": {"n_ctx_train": 131_072}}]},
    "/props": {"default_generation_settings": {"n_ctx": 8192}, "total_slots": 1},
}
OLLAMA = {
    "/v1/models": {"data": [{"id": "m", "owned_by": "library"}]},
    "/api/ps": {"models": [{"name": "other", "context_length": 1}, {"name": "m", "context_length": 4096}]},
}
TRAINED = {"/v1/models": {"data": [{"id": "m", "meta": {"n_ctx_train": 2048}}]}, "/props": {"error": "no"}}
SILENT = {"/v1/models": {"data": [{"id": "m"}]}, "/props": [], "/api/ps": {"models": None}}


@pytest.mark.parametrize(
    ("pages", "window", "told"),
    [
        (VLLM, 40_960, "40,960 tokens, as its server says"),
        (LLAMA, 8192, "as its server says"),
        (OLLAMA, 4096, "as its server says"),
        (TRAINED, 2048, "as its server says"),
        (SILENT, 128_000, "unknown, taken as 128,000 tokens; --set model.window=N"),
    ],
    ids=["vLLM", "llama.cpp", "Ollama", "trained", "silent"],
)
def test_the_server_is_asked_where_the_profile_does_not_say(pages: dict[str, Any], window: int, told: str) -> None:
    notices: list[str] = []
    with ScriptedServer([], pages=pages) as server:
        model, profile = make_backbone("m", base_url=server.url, notice=notices.append)
        model.close()  # type: ignore[attr-defined]
    assert profile.window == window
    assert len(notices) == 1 and told in notices[0]


def test_the_profiles_own_window_goes_before_the_servers() -> None:
    notices: list[str] = []
    with ScriptedServer([], pages=VLLM) as server:
        model, profile = make_backbone("m", base_url=server.url, overrides={"window": 5000}, notice=notices.append)
        model.close()  # type: ignore[attr-defined]
    assert (profile.window, notices) == (5000, [])
