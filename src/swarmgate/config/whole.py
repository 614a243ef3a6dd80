"""
The sections put together, and the file read: a new section is a module with its model, and one line in `Config`.

What refers to another section is looked up in the raw file (`REFERENCES`), so that it is told together with the rest.
Sections whose keys hold secrets stand in `SECRET`: what is written there is never repeated.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from swarmgate.config import access as access_section
from swarmgate.config import egress as egress_section
from swarmgate.config import routes as route_section
from swarmgate.config import targets as target_section
from swarmgate.config import tls as tls_section
from swarmgate.config.access import Access
from swarmgate.config.addresses import Listen, ListenText
from swarmgate.config.behind import Told, behind
from swarmgate.config.callers import Agents, Team
from swarmgate.config.egress import Egress, Pins
from swarmgate.config.policies import HostPolicy
from swarmgate.config.prices import PriceTable
from swarmgate.config.problems import FileError, Loc, key_lines, problem, read_toml, reasons, text_of
from swarmgate.config.records import Records
from swarmgate.config.routes import Ladder
from swarmgate.config.table import Name, Table, keys_at
from swarmgate.config.targets import Target
from swarmgate.config.task_types import TaskType
from swarmgate.config.tls import Tls

REFERENCES = (
    access_section.unresolved,
    route_section.unresolved,
    target_section.unresolved,
    target_section.unkept,
    egress_section.unresolved,
    tls_section.unresolved,
)
SECRET = ("keys",)


class Config(Table):
    """
    The whole file; `connections` is how many callers may have open, None = as many as fit.

    Without routes the only target serves every model, without targets there are no models.
    """

    listen: ListenText = Listen("127.0.0.1", 8787)
    connections: Annotated[int, Field(strict=True, ge=1, le=1_000_000)] | None = None
    access: Access = Access()
    tls: Tls = Tls()
    records: Records = Records()
    targets: dict[Name, Target] = Field(default_factory=dict)
    routes: dict[str, Ladder] = Field(default_factory=dict)
    agents: Agents = Agents()
    teams: dict[Name, Team] = Field(default_factory=dict)
    environments: dict[Name, Team] = Field(default_factory=dict)
    task_types: dict[Name, TaskType] = Field(default_factory=dict)
    prices: dict[str, PriceTable] = Field(default_factory=dict)
    egress: Egress = Egress()
    policies: dict[Name, HostPolicy] = Field(default_factory=dict)
    resolve: Pins = Field(default_factory=dict)


def load(path: Path, environment: Mapping[str, str]) -> Config:
    """The configuration in a file. Errors: `FileError` with all its problems, OSError if it cannot be read."""
    return parse(text_of(path), environment, str(path))


def parse(text: str, environment: Mapping[str, str], source: str = "configuration") -> Config:
    """The configuration that `text` describes. Errors: `FileError` with all its problems."""
    raw, lines = read_toml(text, source), key_lines(text)
    found = [problem(loc, reason, lines) for references in REFERENCES for loc, reason in references(raw)]
    try:
        config = Config.model_validate(raw, context=environment)
    except ValidationError as error:
        told = reasons(error.errors(), raw, keys_in, SECRET)
        told += behind(raw, list(told), lambda rest: _wrong(rest, environment))
        found += [problem(loc, reason, lines) for loc, reason in told]
    if found:
        raise FileError(source, dict.fromkeys(found))
    return config


def _wrong(raw: object, environment: Mapping[str, str]) -> tuple[list[Told], list[Told]]:
    """What is wrong: what rules of ours say, and all of it."""
    try:
        Config.model_validate(raw, context=environment)
    except ValidationError as error:
        errors = error.errors()
        rules = [one for one in errors if one["type"] == "value_error"]
        return reasons(rules, raw, keys_in, SECRET), reasons(errors, raw, keys_in, SECRET)
    return [], []


def keys_in(table: Loc) -> list[str]:
    """The keys that the table at this path may have."""
    return keys_at(Config, table)
