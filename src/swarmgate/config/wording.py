"""What pydantic finds, in words of the file: no tuples and dictionaries, but lists and tables."""

import re
from collections.abc import Callable
from typing import Any

_CLASS = re.compile(r"\[([^\]]*)\]\*\$$")  # what of a name's pattern follows its first character


def plain(kind: str, context: dict[str, Any], message: str) -> str:
    """What is wrong with a value; the library's own message for a kind that is not known here."""
    made = _WORDS.get(kind)
    return message if made is None else made(context)


def _always(words: str) -> Callable[[dict[str, Any]], str]:
    return lambda _context: words


def _short(context: dict[str, Any]) -> str:
    fewest = context["min_length"]
    return "must not be empty" if fewest == 1 else f"must have at least {fewest} parts"


def _pattern(context: dict[str, Any]) -> str:
    pattern: str = context["pattern"]
    found = _CLASS.search(pattern)
    if found is None or not pattern.startswith("^[a-z"):
        return "has characters that cannot stand there"
    signs = " ".join(sign for sign in "._-" if sign in found[1].replace("a-z", "").replace("0-9", ""))
    return f"is no name; write small letters and digits, and {signs} between them"


_WORDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "greater_than_equal": lambda context: f"must be at least {context['ge']}",
    "less_than_equal": lambda context: f"must be at most {context['le']}",
    "greater_than": lambda context: f"must be more than {context['gt']}",
    "less_than": lambda context: f"must be less than {context['lt']}",
    "too_short": _short,
    "string_too_short": _short,
    "too_long": lambda context: f"has more than {context['max_length']} parts",
    "string_too_long": lambda context: f"is longer than {context['max_length']} characters",
    "string_pattern_mismatch": _pattern,
    **dict.fromkeys(
        ("int_parsing", "int_type", "int_from_float", "int_parsing_size", "finite_number"),
        _always("is no whole number"),
    ),
    **dict.fromkeys(("float_parsing", "float_type"), _always("is no number")),
    **dict.fromkeys(("bool_parsing", "bool_type"), _always("is neither true nor false")),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), _always("is no table")),
    **dict.fromkeys(("tuple_type", "list_type", "set_type", "frozen_set_type"), _always("is no list")),
    "string_type": _always("is no text"),
    "path_type": _always("is no path of a file"),
}
