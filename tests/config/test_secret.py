"""SC-07: whatever is made of a configuration, its keys are stars."""

import copy
import json
import pickle
import pprint
import traceback

import pytest
from pydantic import TypeAdapter

from records import a_head
from swarmgate import config, wiring
from swarmgate.gate.target import ModelTarget

KEY = "sk-canary-0b7e41"
TEXT = """
[targets.up]
base_url = "http://127.0.0.1:9/v1"
keys = { first = "env:KEY" }
"""


@pytest.fixture
def read():
    return config.parse(TEXT, {"KEY": KEY})


def everything(read):
    """Every object on the way from the file to the wire that knows the key."""
    plan = wiring.plan(read)
    target = read.targets["up"]
    assert isinstance(plan.targets["up"], ModelTarget)
    yield from (read, target, target.keys, target.keys["first"], plan, plan.targets, plan.targets["up"])


FORMS = {
    "repr": repr,
    "str": str,
    "format": "{}".format,
    "f-string": lambda one: f"{one!s:>9}{one!r}",
    "pprint": pprint.pformat,
    "json": lambda one: json.dumps(one, default=str),
    "log": lambda one: "%s %r" % (one, one),  # noqa: UP031  as logging does
}


@pytest.mark.parametrize("name", FORMS)
def test_sc_07_no_form_of_any_object_shows_a_key(read, name):
    for one in everything(read):
        assert KEY not in FORMS[name](one), type(one)


def test_sc_07_no_dump_and_no_schema_does(read):
    for shown in (read.model_dump_json(), repr(read.model_dump()), repr(TypeAdapter(type(read)).dump_python(read))):
        assert KEY not in shown
        assert "****" in shown


def test_sc_07_no_traceback_does_with_all_its_locals(read):
    target = wiring.plan(read).targets["up"]
    try:
        target.request("none", b"/v1/chat/completions", a_head(), b"")
    except (KeyError, AttributeError) as error:
        told = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    assert "target" in told
    assert KEY not in told


def test_sc_07_a_key_is_not_pickled_and_copies_are_itself(read):
    for one in (read, read.targets["up"].keys):
        with pytest.raises(TypeError, match="not pickled"):
            pickle.dumps(one)
    secret = read.targets["up"].keys["first"]
    assert copy.copy(secret) is copy.deepcopy(secret) is secret
    assert copy.deepcopy(read) == read
