"""Groq: the headers of requests count a day, those of tokens a minute; a request larger than a minute is a 413."""

from swarmgate.core.outcome import Kind
from swarmgate.providers.dialect import (
    CHAT,
    DAY_MS,
    RESPONSES,
    CountsBy,
    Dialect,
    Mark,
    TokenCharge,
    openai_style,
)

DIALECT: Dialect = Dialect(
    "groq",
    "https://console.groq.com/docs/rate-limits",
    hosts=("api.groq.com",),
    base_path="/openai/v1",
    paths=(CHAT, RESPONSES),
    injects_usage=False,  # `x_groq.usage` stands in the last chunk always
    rates=(openai_style("tokens"), openai_style("requests", window_ms=DAY_MS)),
    kinds=(
        Mark(Kind.CAPACITY, codes=("capacity_exceeded", "over_capacity"), statuses=(498, 503)),
        Mark(Kind.TOO_LARGE, statuses=(413,)),
    ),
    charge=TokenCharge(counts_cached=False),
    counts_by=CountsBy.ORGANISATION,
    telltales=("x-groq-region",),
)
