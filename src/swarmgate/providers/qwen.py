"""
Qwen (Alibaba Model Studio): quotas per account, told by no header.

The trap: its 429 with `insufficient_quota` means the tokens of this minute, where OpenAI's means that the money is gone.
"""

from swarmgate.core.outcome import Kind
from swarmgate.providers.dialect import CHAT, COMPLETIONS, EMBEDDINGS, RESPONSES, CountsBy, Dialect, Mark

DIALECT: Dialect = Dialect(
    "qwen",
    "https://help.aliyun.com/en/model-studio/error-code-start",
    hosts=(
        "dashscope.aliyuncs.com",
        "dashscope-intl.aliyuncs.com",
        "dashscope-us.aliyuncs.com",
        ".dashscope.aliyuncs.com",
        ".maas.aliyuncs.com",
    ),
    base_path="/compatible-mode/v1",
    paths=(CHAT, COMPLETIONS, RESPONSES, EMBEDDINGS),
    kinds=(
        Mark(Kind.NO_MONEY, codes=("arrearage", "allocationquota.freetieronly")),
        Mark(Kind.KEY_REFUSED, codes=("invalidapikey", "invalid_api_key")),
        Mark(
            Kind.RATE,
            codes=(
                "insufficient_quota",
                "limit_requests",
                "limit_burst_rate",
                "throttling",
                "throttling.ratequota",
                "throttling.burstrate",
                "throttling.allocationquota",
            ),
        ),
        Mark(Kind.TOO_LARGE, words=("range of input length should be",), statuses=(400,)),
    ),
    counts_by=CountsBy.ACCOUNT,
    telltales=("x-dashscope-call-gateway", "x-dashscope-request-id", "x-dashscope-finished"),
)
