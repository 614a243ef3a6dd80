"""Whoever is not known better: OpenAI-compatible servers (vLLM, Ollama), resellers, any other API with rate headers."""

from swarmgate.core.outcome import Kind
from swarmgate.providers.dialect import (
    CHAT,
    COMPLETIONS,
    COUNT_TOKENS,
    EMBEDDINGS,
    MESSAGES,
    RESPONSES,
    Dialect,
    Mark,
    RateHeader,
    openai_style,
)


def _plain(prefix: str) -> RateHeader:
    return RateHeader("requests", f"{prefix}-limit", f"{prefix}-remaining", f"{prefix}-reset")


DIALECT: Dialect = Dialect(
    "generic",
    "https://www.ietf.org/archive/id/draft-ietf-httpapi-ratelimit-headers-10.html",
    paths=(CHAT, COMPLETIONS, RESPONSES, EMBEDDINGS, MESSAGES, COUNT_TOKENS),
    rates=(
        openai_style("tokens", window_ms=0, refills=False),
        openai_style("requests", window_ms=0, refills=False),
        _plain("x-ratelimit"),
        _plain("x-rate-limit"),
        _plain("ratelimit"),
    ),
    kinds=(Mark(Kind.RATE, codes=("throttlingexception",)),),  # Bedrock
    errors_in_200=("error", "response.error", "choices.error"),
    error_header="x-amzn-errortype",
)
