"""Mistral: quotas per workspace; three generations of headers, windows of 10 seconds, a minute and a month."""

from swarmgate.core.outcome import Kind
from swarmgate.providers.dialect import (
    CHAT,
    EMBEDDINGS,
    MINUTE_MS,
    MONTH_MS,
    CountsBy,
    Dialect,
    Mark,
    RateHeader,
)


def _rate(dimension: str, suffix: str, window_ms: int) -> RateHeader:
    return RateHeader(dimension, f"x-ratelimit-limit-{suffix}", f"x-ratelimit-remaining-{suffix}", "", window_ms)


DIALECT: Dialect = Dialect(
    "mistral",
    "https://docs.mistral.ai/deployment/ai-studio/tier",
    hosts=("api.mistral.ai", "codestral.mistral.ai"),
    paths=(CHAT, EMBEDDINGS),
    injects_usage=False,  # the last chunk counts always
    rates=(
        _rate("tokens", "tokens-minute", MINUTE_MS),
        RateHeader("tokens", "ratelimitbysize-limit", "ratelimitbysize-remaining", "ratelimitbysize-reset", MINUTE_MS),
        _rate("requests", "req-minute", MINUTE_MS),
        _rate("requests", "req-10-second", 10_000),
        _rate("tokens", "tokens-month", MONTH_MS),
        RateHeader("tokens", "x-ratelimitbysize-limit-month", "x-ratelimitbysize-remaining-month", "", MONTH_MS),
    ),
    kinds=(
        Mark(Kind.CAPACITY, codes=("3505", "service_tier_capacity_exceeded")),
        Mark(Kind.CAPACITY, words=("service tier capacity exceeded",)),
        Mark(Kind.RATE, codes=("1300", "rate_limited"), statuses=(429,)),
    ),
    counts_by=CountsBy.WORKSPACE,
    telltales=("ratelimitbysize-limit", "x-ratelimit-limit-req-minute", "x-ratelimit-tokens-query-cost"),
)
