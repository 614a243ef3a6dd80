"""How a limit is written: `500 per 60s`, `200_000 tokens per 1m`, `40_000 input tokens per 60s`, `50 concurrent`."""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

from pydantic import BeforeValidator

from swarmgate.core.compiler import Unit
from swarmgate.core.duration import parse_duration_ms
from swarmgate.core.errors import BadInput
from swarmgate.core.nearest import nearest

_LIMIT = re.compile(r"([0-9][0-9_]{0,17})(\.[0-9]{1,6})?(?: ([A-Za-z_]+(?: tokens)?))?(?: per (.+))?")
_DOLLARS = "USD"
_MICRO = 1_000_000
_OF_MODELS = (Unit.REQUESTS, Unit.TOKENS, Unit.INPUT_TOKENS, Unit.OUTPUT_TOKENS, Unit.CONCURRENT)
_OF_CALLERS = (Unit.REQUESTS, Unit.TOKENS, Unit.CONCURRENT, Unit.MICRO)
_OF_HOSTS = (Unit.REQUESTS, Unit.BYTES, Unit.POINTS, Unit.CONCURRENT)


class Quota(NamedTuple):
    """An amount of a unit in any window of that length; CONCURRENT has no window."""

    amount: int
    unit: Unit
    window_ms: int

    def __str__(self) -> str:
        if self.unit is Unit.MICRO:
            whole, fraction = divmod(self.amount, _MICRO)
            return f"{whole}.{fraction:06}".rstrip("0").rstrip(".") + f" {self.counts}"
        return f"{self.amount} {self.counts}"

    @property
    def counts(self) -> str:
        """What it counts, without how much: the name of its budget stays when an amount is changed."""
        unit = _DOLLARS if self.unit is Unit.MICRO else self.unit.value
        return f"{unit} per {self.window_ms / 1_000:.10g}s" if self.window_ms else unit


def shown(amount: int, unit: str) -> str:
    """So many units as people read them: money in dollars, which budgets count in millionths."""
    return f"{amount / _MICRO:,.10g}" if unit == Unit.MICRO else f"{amount:,}"


def shown_unit(unit: str) -> str:
    """What they are units of."""
    return _DOLLARS if unit == Unit.MICRO else unit


def read_quota(text: object, metered: tuple[Unit, ...]) -> Quota:
    """The quota that a text is, of one of the units `metered`. Errors: `BadInput`."""
    found = _LIMIT.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise BadInput("", f'{text!r} is no limit; write "500 per 60s", "200_000 tokens per 1m" or "50 concurrent"')
    amount, fraction, unit, window = found.groups()
    unit = unit and unit.replace(" ", "_")
    units = {_DOLLARS if one is Unit.MICRO else one.value: one for one in metered}
    if unit is not None and unit not in units:
        raise BadInput("", f"{unit!r} is no unit that is metered here; {nearest(unit, units)}")
    known = units[unit] if unit else Unit.REQUESTS
    if fraction and known is not Unit.MICRO:
        raise BadInput("", f"{text!r}: only money has fractions")
    if (window is None) != (known is Unit.CONCURRENT):
        raise BadInput("", f'{text!r}: "concurrent" has no window, everything else has one, as in "500 per 60s"')
    whole = int(amount)
    if known is Unit.MICRO:
        whole = whole * _MICRO + int((fraction or ".0")[1:].ljust(6, "0"))
    return Quota(whole, known, 0 if window is None else parse_duration_ms(window, ""))


def read_amount(text: str, unit: Unit) -> int:
    """So much of a unit as people write it in a limit: of money dollars, in millionths. Errors: `BadInput` for `amount`."""
    word = _DOLLARS if unit is Unit.MICRO else unit.value
    try:
        return read_quota(f"{text} {word}" + ("" if unit is Unit.CONCURRENT else " per 1s"), (unit,)).amount
    except BadInput:
        money = ", of dollars as 2.50" if unit is Unit.MICRO else ""
        raise BadInput("amount", f"{text[:40]!r} is no amount of {word}; write 20 or 200_000{money}") from None


def _list(value: object) -> object:
    if isinstance(value, str):
        raise BadInput("", f'is no list; write ["{value}"]')
    return value


def twice(quotas: Sequence[Quota]) -> Iterator[str]:
    """What counts the same as one before it, and why it may not."""
    seen: set[str] = set()
    for quota in quotas:
        if quota.counts in seen:
            yield f"has two limits in {quota.counts}; keep the smaller one"
        seen.add(quota.counts)


def _model_quota(text: object) -> Quota:
    return read_quota(text, _OF_MODELS)


def _cap(text: object) -> Quota:
    return read_quota(text, _OF_CALLERS)


def read_caps(texts: Sequence[str], field: str) -> tuple[Quota, ...]:
    """Caps of a caller as they are written, of each kind one. Errors: `BadInput` for `field`."""
    try:
        quotas = tuple(_cap(text) for text in texts)
    except BadInput as bad:
        raise BadInput(field, bad.reason) from None
    for reason in twice(quotas):
        raise BadInput(field, reason)
    return quotas


def _host_quota(text: object) -> Quota:
    return read_quota(text, _OF_HOSTS)


Limits = Annotated[tuple[Annotated[Quota, BeforeValidator(_model_quota)], ...], BeforeValidator(_list)]
CapLimits = Annotated[tuple[Annotated[Quota, BeforeValidator(_cap)], ...], BeforeValidator(_list)]
HostLimits = Annotated[tuple[Annotated[Quota, BeforeValidator(_host_quota)], ...], BeforeValidator(_list)]
