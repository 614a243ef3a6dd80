"""
Other gateways and ours by the tools of the design (wrk, uc.c, sc.c), each in turn with nginx on the same core.

All of them as proxies of one stand-in on the other core. LiteLLM and Portkey are told one key and no limit that binds; Envoy and smg know
neither. `python benchmarks/peers/tools.py`: what is not here is installed into .build, what cannot be had is left out.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from others import MODEL, PEERS, PROXIES, Ground, Skipped

import gate_lab as lab

KEY = "sk-1234"  # what the tools say
NO_LIMIT = 10**8
WEAK_KEY = {"LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true"}  # the key of the tools is one
HEAD = "| | requests/s | of nginx's | CPU us/request | p50 / p99 us at 500/s | RSS MiB |\n|---|---|---|---|---|---|"
STEADY_FROM_RPS = 1_000  # who serves less is not asked for 500 a second


def measure(name: str, rounds: int, seconds: int) -> dict[str, float]:
    """One gateway's figures, and its share of what nginx does in the same minutes. Errors: `Skipped`, SystemExit."""
    with tempfile.TemporaryDirectory() as made, contextlib.ExitStack() as ends:
        upstream = ends.enter_context(lab.start_upstream())
        nginx = ends.enter_context(lab.start_nginx(upstream.port))
        header = ""
        if name == "compiled":
            server = lab.start_gate(upstream.port, name)
        elif name == "swarmgate":
            server = lab.start_gate(upstream.port)
        else:
            port, url = lab.free_port(), f"http://127.0.0.1:{upstream.port}/v1"
            ground = Ground(port, url, [KEY], NO_LIMIT, NO_LIMIT, 60, Path(made), KEY)
            start = (PEERS | PROXIES)[name](ground)
            header = start.header
            environment = os.environ | dict(start.environment) | WEAK_KEY
            server = lab.Server(name, port, 0, list(start.command), wait_s=90, env=environment)
        ends.enter_context(server)
        caller = {"WRK_MODEL": MODEL} | ({"WRK_XH": header} if header else {})
        lab.flood(server, 2, **caller)
        turns = [(lab.flood(nginx, seconds), lab.flood(server, seconds, **caller)) for _ in range(rounds)]
        found = lab.medians([turn[1] for turn in turns])
        found["of_nginx"] = statistics.median(turn[1]["rps"] / turn[0]["rps"] for turn in turns)
        if found["rps"] > STEADY_FROM_RPS and not header:
            steady = lab.steady(server, seconds)
            found |= {"p50": steady["p50"], "p99": steady["p99"]}
        return found | {"rss_mib": server.rss_mib}


def row(name: str, found: dict[str, float]) -> str:
    late = f"{found['p50']:.0f} / {found['p99']:.0f}" if "p50" in found else "not asked"
    figures = (
        f"{found['rps']:,.0f} | {found['of_nginx']:.3f} | {found['cpu_us']:,.0f} | {late} | {found['rss_mib']:.0f}"
    )
    return f"| {name} | {figures} |"


def main() -> int:
    names = [*(["compiled"] if "compiled" in lab.forms() else []), *PROXIES, *PEERS]
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="Example: python benchmarks/peers/tools.py --peers smg"
    )
    parser.add_argument("--quick", action="store_true", help="one round each")
    parser.add_argument("--peers", default=",".join(names), help="which, and in which order")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if absent := lab.missing():
        print(f"tools: skipped, not here: {absent}")
        return 0
    lab.build()
    found: dict[str, dict[str, float]] = {}
    for name in asked.peers.split(","):
        print(f"{name} ...", file=sys.stderr)
        try:
            found[name] = measure(name, 1 if asked.quick else 3, 3)
        except (Skipped, SystemExit, subprocess.CalledProcessError) as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    if asked.json:
        print(json.dumps(found))
        return 0
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, load average {os.getloadavg()[0]:.1f}\n\n{HEAD}")
    for name, figures in found.items():
        print(row(name, figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
