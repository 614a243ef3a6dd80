"""
A value that follows a JSON schema: what a stand-in says where a model was asked for structured output.

It covers what providers accept in structured output and in the parameters of tools, and is checked against the schema before it
is said; what cannot be made is an error, as a provider refuses a schema that it does not support.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from swarmgate.lab.errors import LabError

Schema = Mapping[str, Any]
TEXT = "the measured rate of each host "
MOST_STEPS = 2_000
MOST_DEPTH = 16
FULL_DEPTH = 3  # below it only what is required, and of alternatives first those that end soon
FORMATS = {
    "date-time": "2026-01-02T03:04:05Z",
    "date": "2026-01-02",
    "time": "03:04:05Z",
    "duration": "PT5M",
    "email": "someone@example.org",
    "hostname": "host.example.org",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.org/",
    "uuid": "00000000-0000-4000-8000-000000000001",
}


class NoSample(LabError):
    """No value is known for a schema."""


@lru_cache(256)
def sample_text(schema: bytes) -> str:
    """The JSON of a value that follows the schema in `schema`. Errors: `NoSample`."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - slow to import, and few stand-ins are asked
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415 - see above
    from referencing import Registry  # noqa: PLC0415 - see above
    from referencing.exceptions import Unresolvable  # noqa: PLC0415 - see above

    said = msgspec.json.decode(schema)
    nowhere: Registry[Any] = Registry()  # nothing is fetched
    try:
        Draft202012Validator.check_schema(said)
        value = _Sampler(said).value(said, 0)
        wrong = next(Draft202012Validator(said, registry=nowhere).iter_errors(value), None)
    except SchemaError as error:
        raise NoSample("schema", f"is none: {error.message[:200]}") from None
    except Unresolvable as error:
        raise NoSample("schema", f"refers to what is not in it: {error}") from None
    if wrong is not None:
        raise NoSample("schema", f"this stand-in has no value for {wrong.validator!r} at {wrong.json_path}")
    return msgspec.json.encode(value).decode()


class _Sampler:
    """Walks one schema."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._steps = 0

    def value(self, schema: Any, depth: int) -> Any:
        """One value. Errors: `NoSample`."""
        self._steps += 1
        if depth > MOST_DEPTH or self._steps > MOST_STEPS:
            raise NoSample("schema", "refers to itself without an end, or is too large")
        if not isinstance(schema, Mapping):
            return True
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return schema["enum"][0]
        if "$ref" in schema:
            return self.value(self._meant(str(schema["$ref"])), depth + 1)
        if "allOf" in schema:
            return self.value(self._merged(schema), depth + 1)
        branches = schema.get("anyOf") or schema.get("oneOf")
        if branches:
            return self._first_of(branches, depth)
        return self._of_type(schema, depth)

    def _meant(self, reference: str) -> Any:
        """What a reference inside this schema means."""
        meant = self._root
        for word in reference.removeprefix("#").split("/")[1:]:
            name = word.replace("~1", "/").replace("~0", "~")
            if not isinstance(meant, Mapping) or name not in meant:
                raise NoSample("schema", f"refers to {reference!r}, which is not in it")
            meant = meant[name]
        return meant

    def _merged(self, schema: Schema) -> Schema:
        """A schema and all that `allOf` adds to it, as one."""
        out = {name: value for name, value in schema.items() if name != "allOf"}
        for part in schema["allOf"]:
            for name, value in (self._meant(part["$ref"]) if "$ref" in part else part).items():
                have = out.get(name)
                if isinstance(have, Mapping) and isinstance(value, Mapping):
                    out[name] = {**have, **value}
                elif isinstance(have, list) and isinstance(value, list):
                    out[name] = [*have, *value]
                else:
                    out[name] = value
        return out

    def _first_of(self, branches: list[Any], depth: int) -> Any:
        if depth >= FULL_DEPTH:
            branches = sorted(branches, key=lambda branch: "$ref" in branch)
        for branch in branches[:-1]:
            try:
                return self.value(branch, depth + 1)
            except NoSample:
                continue
        return self.value(branches[-1], depth + 1)

    def _of_type(self, schema: Schema, depth: int) -> Any:
        kind = schema.get("type") or ("object" if "properties" in schema else "string")
        match kind[0] if isinstance(kind, list) else kind:
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, depth)
            case "integer" | "number" as name:
                return _number(schema, is_whole=name == "integer")
            case "boolean":
                return True
            case "null":
                return None
        return _string(schema)

    def _object(self, schema: Schema, depth: int) -> dict[str, Any]:
        required = schema.get("required", ())
        rows = schema.get("properties", {}).items()
        return {name: self.value(one, depth + 1) for name, one in rows if depth < FULL_DEPTH or name in required}

    def _array(self, schema: Schema, depth: int) -> list[Any]:
        first = [self.value(one, depth + 1) for one in schema.get("prefixItems", ())]
        least = schema.get("minItems", 1 if depth < FULL_DEPTH and schema.get("maxItems", 1) else 0)
        more = min(MOST_STEPS, max(0, least - len(first)))
        return first + [self.value(schema.get("items", True), depth + 1) for _ in range(more)]


def _number(schema: Schema, *, is_whole: bool) -> float:
    step = schema.get("multipleOf", 1 if is_whole else 0)
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if above is not None:
        low = above + (step or ((below - above) / 2 if below is not None else 1))
    if below is not None and low is None:
        high = below - (step or 1)
    value = low if low is not None else min(1, high) if high is not None else 1
    return value if not step else -(-value // step) * step


def _string(schema: Schema) -> str:
    if "format" in schema:
        return FORMATS.get(schema["format"], TEXT.strip())
    least: int = schema.get("minLength", 0)
    most: int = schema.get("maxLength", len(TEXT) - 1)
    return (TEXT * (1 + min(least, MOST_STEPS) // len(TEXT)))[: max(least, min(most, len(TEXT) - 1))]
