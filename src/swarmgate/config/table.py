"""What every section is made of: a frozen table that knows its keys, and names that people give to things."""

from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field

from swarmgate.config.problems import Loc

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=40)]


class Table(BaseModel):
    """One table of the file; an unknown key in it is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


def keys_at(table: type[Table], loc: Loc) -> list[str]:
    """The keys that may stand in the table at `loc`, counted from `table`; below a table by name any name is a step."""
    here: Any = table
    for part in loc:
        here = here.model_fields[part].annotation if _is_table(here) else _named(here)
    return list(here.model_fields) if _is_table(here) else []


def _is_table(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Table)


def _named(annotation: Any) -> Any:
    """What stands below a name in `dict[Name, X]`, at a place in `tuple[X, ...]`, or in `X | None`."""
    return next((part for part in get_args(annotation)[::-1] if _is_table(part) or get_args(part)), None)
