"""Anthropic: token buckets per organisation and model class, input and output apart, resets as instants."""

from swarmgate.core.outcome import Kind
from swarmgate.providers.dialect import (
    CHAT,
    COUNT_TOKENS,
    MESSAGES,
    MINUTE_MS,
    CountsBy,
    Dialect,
    Mark,
    RateHeader,
    TokenCharge,
    UsageFields,
)


def _rate(dimension: str, word: str) -> RateHeader:
    limit, remaining, reset = (f"anthropic-ratelimit-{word}-{end}" for end in ("limit", "remaining", "reset"))
    return RateHeader(dimension, limit, remaining, reset, MINUTE_MS, refills=True)


DIALECT: Dialect = Dialect(
    "anthropic",
    "https://docs.anthropic.com/en/api/rate-limits",
    hosts=("api.anthropic.com",),
    paths=(MESSAGES, COUNT_TOKENS, CHAT),  # the last: its layer for OpenAI's SDK
    auth="x-api-key",
    headers=((b"anthropic-version", b"2023-06-01"),),
    usage=UsageFields(
        cached=("cache_read_input_tokens",), apart=("cache_read_input_tokens", "cache_creation_input_tokens")
    ),
    injects_usage=False,  # message_start and message_delta count always
    rates=(
        _rate("input_tokens", "input-tokens"),  # remaining is rounded to thousands
        _rate("output_tokens", "output-tokens"),
        _rate("tokens", "tokens"),
        _rate("requests", "requests"),
    ),
    kinds=(
        Mark(Kind.CAPACITY, codes=("overloaded_error",)),  # a 529, or an event of a 200
        Mark(Kind.NO_MONEY, codes=("billing_error", "enforced_spend_limit_reached")),
        Mark(Kind.KEY_REFUSED, codes=("authentication_error",)),
        Mark(Kind.TOO_LARGE, codes=("request_too_large",), statuses=(413,)),
    ),
    charge=TokenCharge(counts_cached=False),  # of most models; output counts as it is generated, not as max_tokens
    counts_by=CountsBy.ORGANISATION,
    unbilled=(
        "GET /v1",
        "HEAD /v1",
    ),  # models, batches, files and reports are read for nothing; `count_tokens` is read by the gate
    telltales=("anthropic-organization-id", "anthropic-ratelimit-requests-limit", "anthropic-ratelimit-tokens-limit"),
)
