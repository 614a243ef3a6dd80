"""Gemini by its OpenAI-compatible paths: quotas per Google project, told by no header, only in the error's details."""

from swarmgate.core.outcome import Kind
from swarmgate.providers.dialect import CHAT, EMBEDDINGS, CountsBy, Dialect, Mark

DIALECT: Dialect = Dialect(
    "gemini",
    "https://ai.google.dev/gemini-api/docs/rate-limits",
    hosts=("generativelanguage.googleapis.com", "aiplatform.googleapis.com", "-aiplatform.googleapis.com"),
    base_path="/v1beta/openai",
    paths=(CHAT, EMBEDDINGS),
    kinds=(
        Mark(Kind.KEY_REFUSED, codes=("api_key_invalid", "unauthenticated")),
        Mark(Kind.CAPACITY, codes=("model_capacity_exhausted",)),
        Mark(Kind.CAPACITY, codes=("unavailable",), statuses=(503,)),
        Mark(Kind.TOO_LARGE, words=("input token count",), statuses=(400,)),
    ),
    counts_by=CountsBy.PROJECT,
    telltales=("x-gemini-service-tier",),
)
