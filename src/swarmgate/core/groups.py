"""
Which hosts share a tolerance: the operator's groups, else the domain that one owner registered.

A swarm that rotates subdomains still meets one budget. The Public Suffix List (publicsuffix.org/list, with its private
part: github.io, s3.amazonaws.com) says where one owner ends and the next begins; it comes in as lines, so that its
text, its age and its licence stay outside the core. The scheme and the port play no part: http and https share a group.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from swarmgate.core.host import is_address, normal_host
from swarmgate.core.target_errors import BadPattern, BadTarget

LONGEST_GROUP_NAME: Final = 253

GroupTable = Mapping[str, str]  # `api.example.com` or `*.example.com` -> name of the group
NO_GROUPS: Final[GroupTable] = MappingProxyType({})


class SuffixRules(NamedTuple):
    """Public suffixes, the parents of `*.` rules, and the `!` exceptions to those, as normal hosts."""

    suffixes: frozenset[str]
    wildcards: frozenset[str]
    exceptions: frozenset[str]


def suffix_rules(lines: Iterable[str]) -> SuffixRules:
    """The rules of a Public Suffix List; comments and what follows a blank are ignored. Errors: `BadPattern`."""
    suffixes, wildcards, exceptions = set(), set(), set()
    for line in lines:
        rule, *_ = line.split(maxsplit=1) or [""]
        if not rule or rule.startswith("//"):
            continue
        if rule.startswith("*."):
            wildcards.add(_host("suffix rule", rule, rule[2:]))
        elif rule.startswith("!"):
            exceptions.add(_host("suffix rule", rule, rule[1:]))
        else:
            suffixes.add(_host("suffix rule", rule, rule))
    return SuffixRules(frozenset(suffixes), frozenset(wildcards), frozenset(exceptions))


def group_table(patterns: Mapping[str, str]) -> GroupTable:
    """
    The operator's groups, from host or `*.host` to the group's name; `*.` takes subdomains of any depth, not the host.

    Errors: `BadPattern`.
    """
    table: dict[str, str] = {}
    for pattern, name in patterns.items():
        if not 0 < len(name) <= LONGEST_GROUP_NAME or not name.isprintable():
            raise BadPattern("group", name, f"a name has 1 to {LONGEST_GROUP_NAME} printable characters")
        wild = "*." if pattern.startswith("*.") else ""
        host = wild + _host("group pattern", pattern, pattern.removeprefix(wild))
        if table.setdefault(host, name) != name:
            raise BadPattern("group pattern", pattern, f"is already in group {table[host]!r}")
    return MappingProxyType(table)


def registrable_group(host: str, rules: SuffixRules, operator_groups: GroupTable = NO_GROUPS) -> str:
    """
    The group of a normal host: its longest operator pattern's name, else its registrable domain.

    An address, a single label and a public suffix itself are groups of their own.
    """
    if operator_groups and (named := longest_match(host, operator_groups)):
        return named
    return host if is_address(host) else registrable_domain(host, rules)


def registrable_domain(name: str, rules: SuffixRules) -> str:
    """The public suffix of a normal name and one label more, or the name itself if it has no more (PSL "algorithm")."""
    below, suffix = "", name
    while True:
        if suffix in rules.exceptions:
            return suffix
        parent = suffix.partition(".")[2]
        # a last label that no rule names is a suffix too: the list's default rule `*`
        if suffix in rules.suffixes or parent in rules.wildcards or not parent:
            return below or suffix
        below, suffix = suffix, parent


def longest_match(host: str, groups: GroupTable) -> str:
    """The name that the most exact pattern gives to a normal host; empty if none does."""
    return next(_matches(host, groups), "")


def all_matches(host: str, groups: GroupTable) -> tuple[str, ...]:
    """The names that all its patterns give to a normal host, the most exact first, each once."""
    return tuple(dict.fromkeys(_matches(host, groups)))


def _matches(host: str, groups: GroupTable) -> Iterator[str]:
    if host in groups:
        yield groups[host]
    parent = host.partition(".")[2]
    while parent:
        if (wild := "*." + parent) in groups:
            yield groups[wild]
        parent = parent.partition(".")[2]


def _host(field: str, value: str, spelled: str) -> str:
    try:
        return normal_host(spelled)
    except BadTarget as error:
        raise BadPattern(field, value, str(error)) from error
