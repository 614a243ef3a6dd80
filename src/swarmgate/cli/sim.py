"""`swarmgate sim`: one scenario on virtual time, its figures beside two baselines."""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from swarmgate.cli.exits import Exit
from swarmgate.cli.telling import Telling
from swarmgate.config.problems import FileError
from swarmgate.lab.scenario import Scenario
from swarmgate.lab.scenario_file import load, load_shipped, shipped
from swarmgate.lab.sim import arms, result
from swarmgate.lab.sim.verdicts import evaluate
from swarmgate.lab.sim.world import World

EXAMPLE = "Example: swarmgate sim p2-flood --seed 7 --json"
QUIET_SHARE = 0.5  # a shorter run is measured from its middle on


def sim(
    scenario: Annotated[
        str, typer.Argument(help=f"A TOML file, or one of {', '.join(shipped())}.", metavar="NAME|FILE")
    ],
    seed: Annotated[int | None, typer.Option(min=0, help="The same seed gives the same run.")] = None,
    agents: Annotated[int | None, typer.Option(min=1, help="Scale the swarm to so many agents.")] = None,
    seconds: Annotated[int | None, typer.Option(min=2, help="Virtual seconds instead of the scenario's.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Run a scenario in the simulator: the real core against targets that count for themselves."""
    try:
        whole = _read(scenario)
    except FileError as error:
        print(error, file=sys.stderr)
        raise typer.Exit(Exit.USAGE) from None
    told = resized(whole, agents, seconds)
    with Telling() as telling:
        ran = run(told, told.seed if seed is None else seed, telling.at)
    if as_json:
        print(json.dumps(ran.as_json(), indent=2))
    else:
        console = Console()
        console.print(" ".join(told.story.split()), style="italic")
        console.print(ran.as_text())
        if told != whole and not all(verdict.holds for verdict in ran.verdicts):
            console.print(f"its bounds are for {whole.agents:,} agents and {whole.duration_s:,} virtual s")
    if not ran.good:
        raise typer.Exit(Exit.FAILED)


def run(scenario: Scenario, seed: int, tell: Callable[[str, float], None]) -> result.Result:
    """Run a scenario, the twins that its checks need, and the baselines; `tell` hears what runs and its share."""

    def world_of(told: Scenario, label: str) -> World:
        world = World(told, seed)
        world.run(partial(tell, label))
        return world

    world = world_of(scenario, f"{scenario.name}, {scenario.agents:,} agents, {scenario.duration_s:,} virtual s")
    verdicts = evaluate(world, lambda told: world_of(told, "its twin, to compare with"))
    without = [
        arms.direct(scenario, seed, partial(tell, "direct agents")),
        arms.one_budget(scenario, seed, partial(tell, "one global budget")),
    ]
    return result.make(world, verdicts, without)


def resized(scenario: Scenario, agents: int | None, seconds: int | None) -> Scenario:
    """The scenario with another number of agents or another length; loads keep their proportions."""
    if seconds is not None:
        warmup_s = min(scenario.warmup_s, int(seconds * QUIET_SHARE))
        scenario = scenario.model_copy(update={"duration_s": seconds, "warmup_s": warmup_s})
    if agents is not None:
        share = agents / scenario.agents
        for kind in ("loads", "crawls"):
            tables = getattr(scenario, kind)
            fewer = tuple(one.model_copy(update={"agents": max(1, round(one.agents * share))}) for one in tables)
            scenario = scenario.model_copy(update={kind: fewer})
    return scenario


def _read(name: str) -> Scenario:
    if name in shipped():
        return load_shipped(name)
    path = Path(name)
    if path.suffix == ".toml" or path.exists():
        try:
            return load(path)
        except OSError as error:
            print(f"{name}: cannot be read: {error.strerror}", file=sys.stderr)
            raise typer.Exit(Exit.USAGE) from None
    print(f"{name!r} is no scenario; there are {', '.join(shipped())}, or name a TOML file", file=sys.stderr)
    raise typer.Exit(Exit.USAGE)
