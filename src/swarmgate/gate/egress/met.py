"""
Which team has met which hosts: nobody learns from the views where another team's calls go (reliability TI-04).

A host without a policy is known to the gate because somebody called it, so its name alone tells something. Policies and targets
are the operator's, and known to all.
"""


class Met:
    """Teams by what they have met: a host by its authority, a group of hosts by its name."""

    __slots__ = ("_teams",)

    def __init__(self) -> None:
        self._teams: dict[str, set[str]] = {}

    def __len__(self) -> int:
        return len(self._teams)

    def note(self, team: str, *names: str) -> None:
        """A team calls a host; without a key it is the team without a name."""
        for name in names:
            teams = self._teams.get(name)
            if teams is None:
                self._teams[name] = {team}
            else:
                teams.add(team)

    def forget(self, name: str) -> None:
        """It is known to nobody any more."""
        self._teams.pop(name, None)

    def has_met(self, team: str, host: str) -> bool:
        """Whether a team calls a host, by its authority; empty = it is no host."""
        return not host or team in self._teams.get(host, ())

    def knows(self, team: str, name: str) -> bool:
        """Whether a team may see it: it has met it, or it is nothing that is met."""
        teams = self._teams.get(name)
        return teams is None or team in teams
