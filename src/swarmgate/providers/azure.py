"""Azure OpenAI: quotas per resource and deployment, counted in slices of a minute, resets in bare seconds."""

from swarmgate.core.outcome import Kind
from swarmgate.providers.dialect import (
    CHAT,
    COMPLETIONS,
    EMBEDDINGS,
    MINUTE_MS,
    RESPONSES,
    CountsBy,
    Dialect,
    Mark,
    RateHeader,
    TokenCharge,
    openai_style,
)

DIALECT: Dialect = Dialect(
    "azure",
    "https://learn.microsoft.com/azure/ai-foundry/openai/quotas-limits",
    hosts=(".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com"),
    base_path="/openai/v1",
    paths=(CHAT, COMPLETIONS, RESPONSES, EMBEDDINGS),
    auth="api-key",
    rates=(
        openai_style("tokens", refills=False),
        openai_style("requests", refills=False),
        RateHeader("tokens", reset="x-rate-limit-reset-tokens", window_ms=MINUTE_MS),  # 2023, on refusals only
    ),
    kinds=(
        Mark(Kind.CAPACITY, words=("experiencing high demand", "peak load"), statuses=(429, 503)),
        Mark(Kind.NO_MONEY, codes=("insufficient_quota",)),
        Mark(Kind.TOO_LARGE, codes=("context_length_exceeded",), statuses=(400,)),
    ),
    errors_in_200=("error", "response.error"),
    charge=TokenCharge(reserves_output=True),
    counts_by=CountsBy.RESOURCE,
    unbilled=("GET /v1", "HEAD /v1"),  # as OpenAI's: what it has or made is read for nothing
    telltales=("x-ms-region", "apim-request-id", "x-ms-deployment-name", "azureml-model-session"),
)
