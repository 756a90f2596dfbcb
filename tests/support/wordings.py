"""How providers say that a request is too large for the model: status and body."""

from __future__ import annotations

from typing import Any


def error(message: str, **fields: Any) -> dict[str, Any]:
    """An error in the form that most providers use."""
    return {"error": {"message": message, **fields}}


OVERFLOWS: list[tuple[int, Any]] = [
    (400, error("This model's maximum context length is 128000 tokens. However, you sent 130000.")),
    (400, error("Your input exceeds the context window of this model.", code="context_length_exceeded")),
    (400, error("anything", code="context_length_exceeded")),
    (400, {"object": "error", "message": "The prompt (length 9000) is longer than the maximum model length of 4096"}),
    (400, error("'max_tokens' is too large: 2000. This model's maximum context length is 4096 tokens")),
    (400, error("request (4476) exceeds the available context size", type="exceed_context_size_error")),
    (500, error("the request exceeds the available context size. try increasing the context size")),
    (400, {"error": "the input length exceeds the context length"}),
    (422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000"}),
    (400, {"message": "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"}),
    (400, error("Please reduce the length of the messages or completion.")),
    (400, {"error": "This model's maximum prompt length is 131072 but the request contains 537812 tokens."}),
    (400, error("prompt is too long: 210000 tokens > 200000 maximum", type="invalid_request_error")),
    (400, error("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000")),
    (400, [error("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).")]),
    (400, {"message": "Input is too long for requested model."}),
    (429, error("Request too large for gpt-4o on tokens per min: Limit 3, Requested 4", code="rate_limit_exceeded")),
    (413, error("Request too large for model `x`")),
]  # fmt: skip
