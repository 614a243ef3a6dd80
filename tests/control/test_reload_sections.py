"""SIGHUP as the control side does it: what is live, what must wait and is named, and one sentence for the operator."""

import asyncio

import pytest

from swarmgate import wiring
from swarmgate.config import Config, load, parse
from swarmgate.control.reload import AT_START, LIVE, Reload

TEXT = """
[targets.up]
base_url = "http://127.0.0.1:9/v1"
keys = { one = "env:KEY" }
limits = ["600 per 60s"]
[prices]
m = { input = 1, output = 1 }
[egress]
presets = "off"
[policies.papers]
hosts = ["a.org"]
limits = ["600 per 60s"]
"""


class Orders:
    """What was told of changes."""

    def __init__(self):
        self.told = []
        self.file_trouble = ""

    def reloaded(self, served, changed):
        self.told.append((served, set(changed)))


def read(text):
    return parse(text, {"KEY": "sk"})


def reloaded(*texts, before=lambda _gate: None):
    """A gate that read `TEXT` and then these; the gate, the orders, what was said."""

    async def play():
        said, orders, kept = [], Orders(), []
        gate = wiring.gate(asyncio.get_running_loop(), read(TEXT), lambda _call, error: said.append(error))
        before(gate)
        reload = Reload(read(TEXT), gate, orders, said.append, kept.append)
        for text in texts:
            reload.do(text if callable(text) else lambda text=text: read(text))
        gate.egress.close()
        return gate, orders, said, kept

    return asyncio.run(play())


def test_policies_pace_and_prices_are_taken_with_the_rest():
    text = (
        TEXT.replace('["600 per', '["60 per').replace("input = 1", "input = 2").replace('"off"', '"off"\nwait = "3s"')
    )
    gate, orders, said, kept = reloaded(text)
    assert said == ["the configuration was read again: 2 limits changed"]
    assert orders.told[0][1] >= {"papers: requests per 60s", "up: requests per 60s"}
    assert gate.egress.desk.plan.settings.wait_ms == 3_000
    assert gate.plan.prices.own("m") == kept[0].prices["m"].price
    assert kept[0].prices["m"].input == 2_000_000


@pytest.mark.parametrize(
    ("good", "bad"),
    [('hosts = ["a.org"]', "hosts = []"), ('presets = "off"', 'presets = "of"'), ("input = 1", "input = -1")],
)
def test_one_mistake_anywhere_leaves_everything_as_it_was(good, bad):
    gate, orders, said, _ = reloaded(TEXT.replace(good, bad).replace('["600 per', '["60 per'))
    assert "stays as it was" in said[0]
    assert (orders.file_trouble != "", orders.told) == (True, [])
    assert gate.plan.published["up: requests per 60s"].amount == 600
    assert gate.store.book.cells["papers: requests per 60s"].limits.revision == 1


def test_a_file_that_is_gone_leaves_everything_as_it_was(tmp_path):
    gone = tmp_path / "gone.toml"
    _, orders, said, _ = reloaded(lambda: load(gone, {}))
    assert orders.file_trouble == f"{gone} cannot be read: No such file or directory"
    assert said == [f"{orders.file_trouble}\nthe configuration in force stays as it was"]


def test_op_02_what_could_not_be_read_is_an_alert_until_the_file_is_good_again():
    bad = TEXT.replace("input = 1", "input = -1")
    assert "input" in reloaded(TEXT, bad)[1].file_trouble
    assert reloaded(bad, TEXT)[1].file_trouble == ""


WAITS = [
    ("connections = 5\n" + TEXT, "connections"),
    ('listen = "127.0.0.1:9"\n' + TEXT, "listen"),
    (TEXT + '[resolve]\n"a.org" = "127.0.0.1:9"\n', "resolve"),
    (TEXT + "[records]\nanswers = false\n", "records"),
    (TEXT.replace('"off"', '"off"\nmost_targets = 100'), "egress.most_targets"),
    (TEXT.replace('"off"', '"off"\ngroups = { "b.org" = "g" }'), "egress.groups"),
]


@pytest.mark.parametrize(("text", "section"), WAITS)
def test_what_must_wait_for_a_restart_is_named_each_time(text, section):
    gate, _, said, _ = reloaded(text, text, TEXT)
    assert said[:2] == [f"the configuration was read again: 0 limits changed; a restart is needed for {section}"] * 2
    assert said[2] == "the configuration was read again: 0 limits changed"
    assert gate.egress.hosts.plan.settings.most_targets == 10_000


def test_every_section_is_live_or_waits():
    assert {section.partition(".")[0] for _, section in WAITS} | LIVE | {"access", "tls"} == set(Config.model_fields)
    assert {section.partition(".")[2] for _, section in WAITS if "." in section} | {"most_per_group"} == set(AT_START)


def test_an_operators_limit_is_told_to_stand():
    name = "papers: requests per 60s"
    _, orders, said, _ = reloaded(TEXT, before=lambda gate: gate.operator.limit(name, 300))
    assert said == [
        f"the configuration was read again: 0 limits changed; an operator's limit stands over the file for {name}"
    ]
    assert orders.told[0][0].published[name].amount == 300
