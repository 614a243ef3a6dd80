"""The shipped presets: each can be kept, each says where it is from, and what is on by default is what is sure."""

import json
from pathlib import Path

import pytest

from swarmgate.config.policies import preset_policies
from swarmgate.facts.presets import CONFIDENCES, in_force, load_presets

PRESETS = load_presets()
COLLECTED = Path(__file__).parents[3] / "shared/data/presets/targets.json"


@pytest.mark.parametrize("one", PRESETS.values(), ids=PRESETS)
def test_a_preset_is_a_policy_with_a_source(one):
    assert one.source
    assert one.seen
    assert one.confidence in CONFIDENCES
    table = preset_policies(one.policy)  # every limit compiles
    assert table.hosts


def test_every_name_has_one_default():
    names = [one.name for one in PRESETS.values() if one.is_default]
    assert sorted(names) == sorted({one.name for one in PRESETS.values()})


def test_only_sure_ones_are_on_by_default():
    assert {one.confidence for one in in_force("high")} == {"high"}
    assert len(in_force("high")) < len(in_force("medium")) < len(in_force("low"))
    assert in_force("off") == []
    assert "crossref" not in {one.name for one in in_force("high", ("crossref",))}


def test_no_two_defaults_claim_a_host_and_path():
    claims = [(host, path) for one in in_force("low") for host in one.policy["hosts"] for path in _paths(one.policy)]
    assert len(claims) == len(set(claims))


def _paths(policy):
    return [path for kind in policy.get("classes", {}).values() for path in kind["paths"]] or ["*"]


@pytest.mark.skipif(not COLLECTED.exists(), reason="the collected list lies outside the repository")
def test_nothing_is_looser_than_what_was_collected():
    told = {}
    for entry in json.loads(COLLECTED.read_text())["targets"]:
        for host in entry["match"]["hosts"]:
            told.setdefault(host, set()).update(
                (limit["requests"], limit["per_s"]) for limit in entry["limits"] if "requests" in limit
            )
    for one in PRESETS.values():
        table = preset_policies(one.policy)
        quotas = [costed.quota for _, costed in table.all_limits() if costed.quota.unit == "requests"]
        for host in table.hosts:
            assert {(quota.amount, quota.window_ms // 1_000) for quota in quotas} <= told[host]
