"""DeepSeek: no rate but a number of calls at once per account, told in the refusal; comments while a call queues."""

from swarmgate.core.outcome import Kind
from swarmgate.providers.dialect import CHAT, COMPLETIONS, RESPONSES, CountsBy, Dialect, Mark, UsageFields

DIALECT: Dialect = Dialect(
    "deepseek",
    "https://api-docs.deepseek.com/quick_start/rate_limit",
    hosts=("api.deepseek.com",),
    paths=(CHAT, COMPLETIONS, RESPONSES),
    usage=UsageFields(cached=("prompt_cache_hit_tokens", "input_tokens_details.cached_tokens")),
    kinds=(
        Mark(Kind.CONCURRENCY, statuses=(429,)),
        Mark(Kind.CAPACITY, statuses=(503,)),
    ),
    counts_by=CountsBy.ACCOUNT,
    telltales=("x-ds-trace-id",),
)
