"""How the names of callers' own budgets begin; the names of agents and teams have no space, and no target's name has one."""

from typing import Final

AGENT: Final = "agent "
TEAM: Final = "team "
KEY: Final = "key "
OF_CALLERS: Final = (AGENT, KEY, TEAM, "environment ", "task type ")
