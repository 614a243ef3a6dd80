"""The TOML of a converted configuration, commented as `swarmgate init` comments its own."""

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from textwrap import wrap

from swarmgate.cli.litellm.conversion import Converted, TargetTable

_HEAD = """\
# swarmgate: the gate's configuration, made from {source} of a LiteLLM proxy by `swarmgate init`. `swarmgate check` reads it
# and says what each limit yields, `swarmgate up --config THIS_FILE` serves it. What was not taken over stands at the end.

listen = "127.0.0.1:8787"   # the data port, for agents on this machine

# ----- Where models are called -----
# `key_limits` are the rpm and tpm that stood in the file, as the provider publishes them: the gate uses `headroom` percent
# of each, 80 where nothing is said, so that no window at the provider ever holds more. Keys come from the environment.
"""
_LARGEST = "the largest call that must fit; one of the usual 16_384 would not"
_WINDOWS = "max_input_tokens: a larger call passes the model over where another can serve it"
_ROUTES = """
# ----- What serves a model -----
# What a caller asks for, and the ladder of what may serve it: a group's own deployments, then its fallbacks.

[routes]
"""
_CAPS = """
# ----- What all callers together may use -----

[environments.everybody]
agents = ["*"]
"""
_LEFT_OUT = """
# ----- What was not taken over -----
"""
_WIDE = 118


def toml(told: Converted, source: str) -> str:
    """The whole file."""
    return "".join(_parts(told, source))


def _parts(told: Converted, source: str) -> Iterator[str]:
    yield _HEAD.format(source=source)
    for target in told.targets:
        yield "".join(_target(target))
    yield _ROUTES
    for alias, rungs in told.routes.items():
        yield f"{_text(alias)} = {_text(rungs[0]) if len(rungs) == 1 else _list(rungs)}\n"
    for name, price in told.prices.items():
        yield f"\n[prices.{_text(name)}]   # dollars for a million tokens\n{_price(price)}"
    if told.caps:
        yield f"{_CAPS}limits = {_list(told.caps)}\n"
    if told.left_out:
        yield _LEFT_OUT
        for field, reason in told.left_out:
            yield "".join(f"# {line}\n" for line in wrap(f"{field}: {reason}", _WIDE, subsequent_indent="  "))


def _target(target: TargetTable) -> Iterator[str]:
    yield f"\n[targets.{target.name}]\nbase_url = {_text(target.url)}\n"
    if target.provider:
        yield f"provider = {_text(target.provider)}\n"
    keys = [f"key-{number} = {_text(f'env:{variable}')}" for number, variable in enumerate(target.variables, 1)]
    yield f"keys = {{ {', '.join(keys)} }}\n"
    if target.limits:
        yield f"key_limits = {_list(target.limits)}\n"
    if target.largest_tokens:
        yield f"largest_tokens = {target.largest_tokens}   # {_LARGEST}\n"
    if target.windows:
        windows = [f"{_text(model)} = {window}" for model, window in target.windows.items()]
        yield f"windows = {{ {', '.join(windows)} }}   # {_WINDOWS}\n"


def _price(price: Mapping[str, object]) -> str:
    return "".join(f"{name} = {_number(cost)}\n" for name, cost in price.items())


def _number(cost: object) -> str:
    return f"{Decimal(str(cost)).normalize():f}"


def _list(texts: tuple[str, ...]) -> str:
    return f"[{', '.join(map(_text, texts))}]"


def _text(text: str) -> str:
    """A TOML string: printable text needs no other escapes than JSON's."""
    return json.dumps(text, ensure_ascii=False)
