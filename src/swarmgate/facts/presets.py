"""
Published limits of well-known hosts, shipped with the package: facts, each with source, date and confidence.

The amounts are what a host's owner states; headroom is taken when they are compiled. A preset has variants (without a
key, with one, ...): `default` marks the one that holds for a caller of whom nothing is known.
"""

import json
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

CONFIDENCES = ("high", "medium", "low")


class Preset(NamedTuple):
    """
    One variant of one preset; `policy` is what `[policies.NAME]` would say for it.

    `asks` is what the host wants besides a pace (a contact, a parameter); `unmetered` are limits that no gate can count.
    """

    name: str
    variant: str
    is_default: bool
    policy: dict[str, Any]
    confidence: str
    kind: str
    seen: str
    source: tuple[str, ...]
    asks: str = ""
    unmetered: tuple[str, ...] = ()
    notes: str = ""

    @property
    def id(self) -> str:
        """`name/variant`, as a policy refers to it."""
        return f"{self.name}/{self.variant}"

    @property
    def asks_for_contact(self) -> bool:
        """Whether the host wants to read in the User-Agent whom to write to."""
        return "User-Agent" in self.asks or "UA" in self.asks.split()


@cache
def load_presets() -> dict[str, Preset]:
    """Every shipped preset by id, in the order of their names."""
    text = files("swarmgate.facts").joinpath("presets.json").read_text(encoding="utf-8")
    return {one.id: one for one in map(_preset, json.loads(text)["presets"])}


def in_force(least: str, without: tuple[str, ...] = ()) -> list[Preset]:
    """The default variants whose confidence is `least` or better, except those named in `without`; none for `off`."""
    wanted = CONFIDENCES[: CONFIDENCES.index(least) + 1] if least in CONFIDENCES else ()
    return [
        one
        for one in load_presets().values()
        if one.is_default and one.confidence in wanted and one.name not in without
    ]


def _preset(told: dict[str, Any]) -> Preset:
    policy: dict[str, Any] = {key: told[key] for key in ("hosts", "limits", "classes", "refusals") if key in told}
    return Preset(
        told["name"],
        told["variant"],
        told.get("default", False),
        policy,
        told["confidence"],
        told["kind"],
        told["seen"],
        tuple(told["source"]),
        told.get("requires", ""),
        tuple(told.get("unmetered", ())),
        told.get("notes", ""),
    )
