"""How the names of callers' own budgets begin; the names of agents and teams have no space, and no target's name has one."""

AGENT = "agent "
TEAM = "team "
KEY = "key "
OF_CALLERS = (AGENT, KEY, TEAM, "environment ", "task type ")
