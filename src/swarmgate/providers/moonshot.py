"""Moonshot (Kimi): one quota per account over all keys and models; `max_tokens` is taken at admission."""

from swarmgate.core.outcome import Kind
from swarmgate.providers.dialect import CHAT, MINUTE_MS, CountsBy, Dialect, Mark, RateHeader, TokenCharge, UsageFields

DIALECT: Dialect = Dialect(
    "moonshot",
    "https://platform.moonshot.ai/docs/pricing/limits",
    hosts=("api.moonshot.ai", "api.moonshot.cn"),
    paths=(CHAT,),
    usage=UsageFields(cached=("cached_tokens",)),
    rates=(RateHeader("requests", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", MINUTE_MS),),
    kinds=(
        Mark(Kind.NO_MONEY, codes=("exceeded_current_quota_error",)),
        Mark(Kind.KEY_REFUSED, codes=("invalid_authentication_error", "incorrect_api_key_error")),
        Mark(Kind.CAPACITY, codes=("engine_overloaded_error",)),
        Mark(Kind.CONCURRENCY, words=("max organization concurrency",), statuses=(429,)),
    ),
    charge=TokenCharge(reserves_output=True),
    counts_by=CountsBy.ACCOUNT,
    counts_models=False,
    telltales=("msh-request-id", "msh-trace-id"),
)
