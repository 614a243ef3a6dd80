"""
What agents and schedulers import: who calls and why, transports through the gate, deferrals as values.

    import swarmgate
    with swarmgate.context(agent="a17", goal="g3", step="s1"):
        httpx.Client(transport=GateTransport()).get("https://export.arxiv.org/api/query?...")

Nothing here imports the gate. Transports stand beside the library that they plug into: `swarmgate.sdk.httpx` and
`swarmgate.sdk.httpx2`.
"""

from swarmgate.sdk.attribution import Attribution, context, current
from swarmgate.sdk.deferral import Blocking, Deferred, deferral_of
from swarmgate.sdk.patience import until_admitted, until_admitted_async

__all__ = [
    "Attribution",
    "Blocking",
    "Deferred",
    "context",
    "current",
    "deferral_of",
    "until_admitted",
    "until_admitted_async",
]
