"""
A gate before these stand-ins, ready to be pasted into a shell: its file with the limits as a provider would publish them, its keys.

The gate is told the numbers and no more; how a limit counts, and what a host takes, it is not told.
"""

from collections.abc import Iterable, Iterator, Mapping

from swarmgate.lab.scenario import ConcurrencyLimit, Limit
from swarmgate.lab.standin.plan import DEFAULT_HOSTS, LOOPBACK, HostPlan, ProviderPlan, StandInPlan
from swarmgate.lab.standin.web import WEB

FILE = "gate.toml"
_NAMES = tuple(f"{word}.example" for word in ("archive", "index", "library", "news", "wiki"))
_NO = {
    "429": "429",
    "429-date": "429 by date",
    "429-silent": "silent 429",
    "403": "403",
    "503": "503",
}
_MOST_NAMES = 8
_MODELS = {"openai": "*", "anthropic": "claude-*"}


def gate_file(plan: StandInPlan, ports: Mapping[str, int]) -> str:
    """The TOML, with every provider and some hosts of every kind."""
    parts = ["\n".join(_target(one, ports[one.name])) for one in plan.providers]
    if plan.providers:
        parts.append("[routes]\n" + "\n".join(_routes(plan.providers)))
    web = [port for name, port in ports.items() if name.startswith(f"{WEB}-")]
    if web:
        pins = [
            f'"{name}" = "{LOOPBACK}:{web[at % len(web)]}"  # {_takes(host)}'
            for at, (name, host) in enumerate(hosts_of(plan).items())
        ]
        parts.append("[resolve]  # what they take is not told to the gate\n" + "\n".join(pins))
    return "\n\n".join(parts) + "\n"


def keys_lines(plan: StandInPlan) -> list[str]:
    """Lines of shell that put every key into the environment."""
    return [
        f"for n in $(seq {one.keys}); do export {_variable(one)}_$n={one.key_of(1).removesuffix('1')}$n; done"
        for one in plan.providers
    ]


def hosts_of(plan: StandInPlan) -> dict[str, HostPlan]:
    """Some names: those of the plan, else one for each usual kind."""
    if plan.hosts:
        return dict(list(plan.hosts.items())[:_MOST_NAMES])
    of_kind = {DEFAULT_HOSTS.index(plan.host(name)): name for name in reversed(_NAMES)}
    return {name: plan.host(name) for _, name in sorted(of_kind.items())}


def _target(one: ProviderPlan, port: int) -> Iterator[str]:
    yield f"[targets.{one.name}]"
    yield f'base_url = "http://{LOOPBACK}:{port}/v1"'
    yield f'provider = "{one.dialect}"'
    told = {tuple(map(limit_text, one.limits_of(scope))) for scope in range(one.scopes)}
    if len(told) == 1:
        yield f"key_limits = {_list(told.pop())}"
    yield f"[targets.{one.name}.keys]"
    for number in range(1, one.keys + 1):
        yield f'key-{number} = "env:{_variable(one)}_{number}"'
    if one.scopes < one.keys:
        yield f"[targets.{one.name}.accounts]  # keys that are counted as one"
        for scope in range(one.scopes):
            yield f"account-{scope + 1} = {_list(f'key-{n + 1}' for n in range(scope, one.keys, one.scopes))}"


def _list(words: Iterable[str]) -> str:
    return "[" + ", ".join(f'"{word}"' for word in words) + "]"


def _routes(providers: tuple[ProviderPlan, ...]) -> Iterator[str]:
    """The first of each dialect serves its usual names, others what begins with their own."""
    taken = set[str]()
    for one in providers:
        models = _MODELS[one.dialect]
        yield f'"{f"{one.name}-*" if models in taken else models}" = "{one.name}/*"'
        taken.add(models)


def _variable(one: ProviderPlan) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in one.name.upper())


def _takes(host: HostPlan) -> str:
    limits = ", ".join(
        limit_text(one) + ("" if one.kind == "concurrency" else f" ({one.kind.replace('_', ' ')})")
        for one in host.limits
    )
    return f"{limits}; else {_NO[host.refusal]}" if limits else "takes anything"


def limit_text(limit: Limit) -> str:
    """A limit as a provider publishes it."""
    if isinstance(limit, ConcurrencyLimit):
        return f"{limit.limit} concurrent"
    unit = "tokens " if limit.unit == "tokens" else ""
    window = f"{limit.window_ms // 1_000}s" if limit.window_ms % 1_000 == 0 else f"{limit.window_ms}ms"
    return f"{limit.limit} {unit}per {window}"
