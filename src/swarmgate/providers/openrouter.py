"""OpenRouter: a reseller. A 429 is mostly its own provider's; more keys of an account change nothing."""

from swarmgate.core.outcome import Kind
from swarmgate.providers.dialect import (
    CHAT,
    COMPLETIONS,
    EMBEDDINGS,
    MESSAGES,
    RESPONSES,
    CountsBy,
    Dialect,
    Mark,
    RateHeader,
)

DIALECT: Dialect = Dialect(
    "openrouter",
    "https://openrouter.ai/docs/api_reference/limits",
    hosts=("openrouter.ai",),
    base_path="/api/v1",
    paths=(CHAT, COMPLETIONS, RESPONSES, EMBEDDINGS, MESSAGES),
    injects_usage=False,  # the last chunk counts always
    rates=(RateHeader("requests", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"),),  # on refusals
    kinds=(
        Mark(Kind.CAPACITY, words=("rate-limited upstream", "provider returned error"), statuses=(200, 429)),
        Mark(Kind.CAPACITY, statuses=(503,)),  # no provider serves this model now
        Mark(Kind.RATE, codes=("in_flight_budget_exhausted",), statuses=(402,)),
        Mark(Kind.TOO_LARGE, codes=("weight_exceeds_budget",), statuses=(402,)),
    ),
    errors_in_200=("error", "choices.error", "response.error"),
    counts_by=CountsBy.ACCOUNT,
    telltales=("x-openrouter-request-id", "x-generation-id"),
)
