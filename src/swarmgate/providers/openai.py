"""OpenAI: rate limits per organisation and project, six pairs of headers, errors also inside streams."""

from swarmgate.core.outcome import Kind
from swarmgate.providers.dialect import (
    CHAT,
    COMPLETIONS,
    EMBEDDINGS,
    RESPONSES,
    CountsBy,
    Dialect,
    Mark,
    TokenCharge,
    openai_style,
)

DIALECT: Dialect = Dialect(
    "openai",
    "https://developers.openai.com/api/docs/guides/rate-limits",
    hosts=("api.openai.com", "eu.api.openai.com", "us.api.openai.com"),
    paths=(CHAT, COMPLETIONS, RESPONSES, EMBEDDINGS),
    rates=(
        openai_style("tokens"),
        openai_style("requests"),
        openai_style("images", "input-images"),
        openai_style("project_tokens", "project-tokens"),
        openai_style("project_requests", "project-requests"),
        openai_style("tokens_usage_based"),
    ),
    kinds=(
        Mark(Kind.NO_MONEY, codes=("insufficient_quota", "credit_balance_exhausted", "billing_hard_limit_reached")),
        Mark(Kind.RATE, codes=("slow_down",)),
        Mark(Kind.TOO_LARGE, codes=("context_length_exceeded",), statuses=(400,)),
    ),
    errors_in_200=("error", "response.error"),  # the second: a `response.failed` event
    charge=TokenCharge(),  # 534 recorded calls: characters / 4 and one a message; tools, max_tokens and output take nothing
    counts_by=CountsBy.ORGANISATION,
    unbilled=(
        "GET /v1",
        "HEAD /v1",
        "POST /v1/moderations",
    ),  # what it has or made is read for nothing (its pricing page names tokens, images, minutes, sessions, storage)
    telltales=("openai-processing-ms", "openai-version", "openai-organization"),
)
