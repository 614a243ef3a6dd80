"""
The text of the Public Suffix List, from the data file that the `publicsuffixlist` package ships: no network, no copy.

Only the file is read: the rules are judged in the core (`core.groups`), which may do no I/O and takes them as a value.
"""

from functools import cache
from importlib.resources import files

from swarmgate.core.groups import SuffixRules, suffix_rules


@cache
def load_suffix_rules() -> SuffixRules:
    """The rules of the installed list, its private part included; read once per process, in some 50 ms."""
    text = files("publicsuffixlist").joinpath("public_suffix_list.dat").read_text(encoding="utf-8")
    return suffix_rules(text.splitlines())
