"""What a planned step would take: of a model, the first rung of its ladder with every key that is not out."""

from collections.abc import Callable, Mapping

from swarmgate.core.errors import BadInput
from swarmgate.core.estimate import FIRST_TOKENS
from swarmgate.core.ladders import Ladders
from swarmgate.core.limits import Limits
from swarmgate.core.planning import NOTHING_FRESH, Way
from swarmgate.core.record import Rung
from swarmgate.core.scope import Scope
from swarmgate.gate.view.plans import PlanStep, StepWays
from swarmgate.gate.view.viewer import may_call


class ModelFinder:
    """Steps by their model; `by_url` finds those that name a URL, if the gate has doors for them."""

    def __init__(
        self, ladders: Ladders, now_ms: Callable[[], int], by_url: Callable[[PlanStep, Scope], StepWays] | None = None
    ) -> None:
        self._ladders = ladders
        self._now_ms = now_ms
        self.by_url = by_url

    def find(self, asked: PlanStep, viewer: Scope) -> StepWays:
        """Errors: `BadInput` if the step names neither, both, what is not served, or what the viewer may not call."""
        if bool(asked.model) == bool(asked.url):
            raise BadInput("model", "say either a model or a url")
        if asked.url:
            if self.by_url is None:
                raise BadInput("url", "this gate serves models only")
            return self.by_url(asked, viewer)
        rungs = self._ladders.by_model.get(asked.model) or self._ladders.other(asked.model)
        if rungs is None:
            raise BadInput("model", f"has no route; nearest: {', '.join(self._ladders.nearest(asked.model))}")
        rungs = tuple(rung for rung in rungs if may_call(viewer, rung.target))
        if not rungs or not viewer.allows_model(asked.model):
            raise BadInput("model", "is none that this agent key may call")
        reserve = min(asked.output_tokens or FIRST_TOKENS, FIRST_TOKENS)
        return found_at(rungs[0], (asked.prompt_tokens, reserve), self._now_ms())


def found_at(rung: Rung, size: tuple[int, int], now_ms: int, fresh: Mapping[str, Limits] = NOTHING_FRESH) -> StepWays:
    """The ways of one rung for a call of that size: its keys that are in, or all from when the first is back."""
    back_ms = {key: seen.back_at_ms for key, seen in rung.ring.views(now_ms).items()}
    keys = tuple(key for key, at_ms in back_ms.items() if at_ms <= now_ms)
    not_before_ms = 0
    if not keys:
        not_before_ms = min(back_ms.values())
        keys = tuple(back_ms)
    routes = [rung.routes[key] for key in keys]
    ways = tuple(Way(route.demands(*size), route.ways) for route in routes)
    return StepWays(rung.target, ways, keys, not_before_ms, fresh)
