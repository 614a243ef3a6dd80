"""The simulator's own cost: two-thousand-agents, wall seconds per virtual minute and memory."""

import argparse
import json
import resource
import time

from swarmgate.cli.sim import resized
from swarmgate.lab.scenario_file import load_shipped
from swarmgate.lab.sim.world import World


def measure(seconds: int, *, judged: bool) -> dict[str, float]:
    """Run the scenario for so many virtual seconds; `judged` keeps the umpire watching every grant."""
    scenario = resized(load_shipped("two-thousand-agents"), None, seconds)
    world = World(scenario, 1)
    world.umpire.orders = judged
    began = time.process_time()
    world.run()
    cpu_s = time.process_time() - began
    return {
        "virtual_s": seconds,
        "calls": len(world.swarm.jobs),
        "wall_s_per_virtual_minute": round(world.wall_s * 60 / seconds, 2),
        "cpu_s_per_virtual_minute": round(cpu_s * 60 / seconds, 2),
        "us_per_call": round(cpu_s * 1e6 / max(1, len(world.swarm.jobs)), 1),
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, epilog="Example: python benchmarks/bench_sim.py --seconds 60")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="20 virtual seconds")
    asked = parser.parse_args()
    figures = measure(20 if asked.quick else asked.seconds, judged=True)
    if asked.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:28} {value:>12,}")


if __name__ == "__main__":
    main()
