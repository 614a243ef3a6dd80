"""A value for every schema of the kinds that providers accept, and a reason where there is none."""

import json

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmgate.lab.standin.sample import FORMATS, NoSample, sample_text

NAMES = st.sampled_from(["title", "score", "parts", "next", "kind"])
STRINGS = st.builds(
    lambda least, more: {"type": "string", "minLength": least, "maxLength": least + more},
    st.integers(0, 90),
    st.integers(0, 9),
)
NUMBERS = st.builds(
    lambda kind, low, more, step: {"type": kind, "minimum": low, "maximum": low + step + more, "multipleOf": step},
    st.sampled_from(["integer", "number"]),
    st.integers(-9, 9),
    st.integers(0, 9),
    st.integers(1, 4),
)
LEAVES = st.one_of(
    STRINGS,
    NUMBERS,
    st.sampled_from(sorted(FORMATS)).map(lambda name: {"type": "string", "format": name}),
    st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"type": ["integer", "null"]}, {"const": 5}, {}, True]),
    st.lists(st.integers(), min_size=1, max_size=3).map(lambda values: {"enum": values}),
)


def objects(inner):
    return st.dictionaries(NAMES, inner, max_size=3).map(
        lambda rows: {"type": "object", "properties": rows, "required": sorted(rows), "additionalProperties": False}
    )


SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        objects(inner),
        st.builds(lambda item, least: {"type": "array", "items": item, "minItems": least}, inner, st.integers(0, 3)),
        st.lists(inner, min_size=1, max_size=3).map(lambda some: {"anyOf": some}),
    ),
    max_leaves=8,
)


@given(SCHEMAS)
def test_a_value_follows_its_schema(schema):
    value = json.loads(sample_text(json.dumps(schema).encode()))
    jsonschema.validate(value, schema, jsonschema.Draft202012Validator)


LINKED = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}, "required": ["next"]}
PARTS = {"$defs": {"a": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}}}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (LINKED, {"next": {"next": None}}),
        (PARTS | {"allOf": [{"$ref": "#/$defs/a"}, {"required": ["y"], "properties": {"y": {"const": 2}}}]}, None),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
        ({"type": "integer", "exclusiveMaximum": -3}, -4),
        ({"type": "array", "prefixItems": [{"const": 1}, {"const": 2}]}, [1, 2]),
    ],
)
def test_values_of_what_is_rarer(schema, value):
    found = json.loads(sample_text(json.dumps(schema).encode()))
    assert found == (value or {"y": 2, "x": 1})


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}, "without an end"),
        ({"$ref": "#/$defs/none"}, "not in it"),
        ({"$ref": "https://example.org/schema"}, "not in it"),
        ({"type": "string", "pattern": "^[0-9]{7}$"}, "'pattern' at \\$"),
        ({"type": "array", "minItems": 2, "uniqueItems": True, "items": {"const": 1}}, "uniqueItems"),
        ({"type": "nonsense"}, "is none"),
        ({"enum": []}, "'enum'"),
    ],
)
def test_what_has_no_value_says_why(schema, words):
    with pytest.raises(NoSample, match=words):
        sample_text(json.dumps(schema).encode())
