"""`swarmgate pause` and `swarmgate resume`: let nothing through to a target, or to one budget, until further notice."""

from swarmgate.cli.order import USUAL_PORT, AsJson, Name, Port, Reason, State, give

PAUSE_EXAMPLE = "Example: swarmgate pause openai --reason 'their status page is red'"
RESUME_EXAMPLE = "Example: swarmgate resume openai --reason 'it is green again'"


def pause(name: Name, reason: Reason, state: State = None, port: Port = USUAL_PORT, as_json: AsJson = False) -> None:
    """Let nothing through to a target or budget: calls wait, or are deferred; nothing that runs is cut."""
    give("pause", name, reason, (state, port), as_json=as_json)


def resume(name: Name, reason: Reason, state: State = None, port: Port = USUAL_PORT, as_json: AsJson = False) -> None:
    """End a pause: whoever waits goes at once. Keys that were out for good, and a host that asked to be left alone, are tried again."""
    give("resume", name, reason, (state, port), as_json=as_json)
