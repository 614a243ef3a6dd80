"""
swarmgate beside other gateways, by the same tools: `swarmgate load` before each, a stand-in with its witness behind.

200 agents, 10 calls a second of the default mix, unary, under limits that a good router need not break: what LiteLLM can carry
on one core. Each is measured alone, in turn, against fresh stand-ins. Prints the tables of README.md, one for each ground.
"""

import argparse
import contextlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

from others import MODEL, PEERS, Ground, Skipped

import gate_lab as lab
from swarmgate.lab.standin.plan import ProviderPlan, StandInPlan
from swarmgate.lab.standin.witness_log import Seen, read_rows, witnesses

AGENTS, CALLS_PER_S = 200, 10
WINDOW_S, START_S = 10, 90
HEAD = """\
| | answered/s of wanted, open at the end | M tokens/min | 429s agents saw, other failures | 429s of the provider | over a limit \
| P50 / P99 ms | CPU s, MiB |
|---|---|---|---|---|---|---|---|"""
SWARMGATE = str(Path(sys.executable).parent / "swarmgate")


class Limits(NamedTuple):
    """How many keys, and what each may do per window: 16.8 calls a second together, of which 10 are 60 %."""

    keys: int
    requests: int
    tokens: int


GROUNDS = {"small": Limits(12, 14, 200_000), "large": Limits(4, 42, 1_000_000)}


def stand_in(port: int, limits: Limits) -> StandInPlan:
    window = {"kind": "sliding_log", "window_ms": WINDOW_S * 1_000}
    told = [[window | {"limit": limits.requests}, window | {"limit": limits.tokens, "unit": "tokens"}]]
    keys = {"keys": limits.keys, "scopes": limits.keys}
    provider = keys | {"name": "provider", "dialect": "openai", "limits": told, "port": port}
    return StandInPlan(providers=(ProviderPlan.model_validate(provider),), seed=1)


def measure(peer: str, limits: Limits, seconds: int) -> dict[str, object]:
    """One peer's figures. Errors: `Skipped`."""
    with tempfile.TemporaryDirectory() as made, contextlib.ExitStack() as ends:
        folder, upstream = Path(made), lab.free_port()
        plan = stand_in(upstream, limits)
        (folder / "plan.json").write_text(plan.model_dump_json())
        witness = folder / "witness"
        keys = [plan.providers[0].key_of(number) for number in range(1, limits.keys + 1)]
        url = f"http://127.0.0.1:{upstream}/v1"
        port, callers_key = lab.free_port(), f"sk-{secrets.token_hex(32)}"
        start = PEERS[peer](Ground(port, url, keys, limits.requests, limits.tokens, WINDOW_S, folder, callers_key))
        serve = [SWARMGATE, "lab", "serve", "--plan", str(folder / "plan.json"), "--witness", str(witness)]
        with contextlib.ExitStack() as provider:
            provider.enter_context(lab.Server("provider", upstream, 1, serve))
            gateway = ends.enter_context(
                lab.Server(peer, port, 0, list(start.command), wait_s=START_S, env=os.environ | dict(start.environment))
            )
            command = [SWARMGATE, "load", "mix", "--to", f"http://127.0.0.1:{port}/v1", "--unary", "--json"]
            command += ["--agents", str(AGENTS), "--rate", str(CALLS_PER_S), "--model", MODEL, "--key", "CALLERS_KEY"]
            command += ["--header", start.header] if start.header else []
            before_s = gateway.cpu_s
            done = subprocess.run(
                [*command, "--seconds", str(seconds)],
                capture_output=True,
                text=True,
                timeout=seconds + 60,
                check=False,
                env=os.environ | {"CALLERS_KEY": callers_key},
            )
            used_s, memory = gateway.cpu_s - before_s, gateway.rss_mib
        if not done.stdout.strip():
            raise SystemExit(f"{peer}: {done.stderr.strip()[-500:]}")
        return json.loads(done.stdout) | judged(witness, limits) | {"cpu_s": round(used_s, 1), "rss_mib": round(memory)}


def judged(witness: Path, limits: Limits) -> dict[str, int]:
    """What the provider saw: arrivals, refusals, and arrivals beyond a published limit in some window."""
    rows = list(read_rows(witness))
    over = sum(
        seen.over_limit(limits.requests, WINDOW_S * 1_000) + seen.over_limit(limits.tokens, WINDOW_S * 1_000, "tokens")
        for seen in witnesses(iter(rows)).values()
    )
    arrivals = [row for row in rows if isinstance(row, Seen)]
    return {"arrivals": len(arrivals), "refused": sum(row.status == 429 for row in arrivals), "over_limit": over}


def row(peer: str, said: dict[str, object]) -> str:
    statuses = said["statuses"]
    others = sum(count for status, count in statuses.items() if status not in {"200", "429"})
    cells = (
        f"{said['answered_per_s']} of {said['wanted_per_s']}, {said['open_at_end']}",
        f"{said['tokens_per_minute'] / 1e6:.2f}",
        f"{statuses.get('429', 0)}, {others}",
        f"{said['refused']} of {said['arrivals']:,}",
        f"{said['over_limit']}",
        f"{said['p50_ms']:,} / {said['p99_ms']:,}",
        f"{said['cpu_s']}, {said['rss_mib']}",
    )
    return f"| {peer} | {' | '.join(cells)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, epilog="Example: python benchmarks/peers/run.py --quick")
    parser.add_argument("--quick", action="store_true", help="20 s each")
    parser.add_argument("--seconds", type=int, default=60, help="how long each is asked")
    parser.add_argument("--peers", default=",".join(PEERS), help="which, and in which order")
    parser.add_argument("--ground", choices=GROUNDS, action="append", help="which limits; by default all, in turn")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if shutil.which("taskset") is None:
        print("taskset (util-linux) is not installed; nothing is measured without it", file=sys.stderr)
        return 1
    seconds = 20 if asked.quick else asked.seconds
    grounds = {name: GROUNDS[name] for name in asked.ground or GROUNDS}
    found = {name: tried(limits, asked.peers.split(","), seconds) for name, limits in grounds.items()}
    if asked.json:
        print(json.dumps(found))
        return 0
    load = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, load average {os.getloadavg()[0]:.1f}"
    print(f"{load}; {AGENTS} agents, {CALLS_PER_S} calls/s of the mix, unary, {seconds} s each")
    for name, limits in grounds.items():
        each = f"{limits.requests} requests and {limits.tokens:,} tokens per {WINDOW_S} s each"
        print(f"\n{limits.keys} keys of {each}:\n\n{HEAD}")
        for peer, said in found[name].items():
            print(row(peer, said))
    return 0


def tried(limits: Limits, peers: Sequence[str], seconds: int) -> dict[str, dict[str, object]]:
    """The peers that can be had, by name; the others are told once."""
    found: dict[str, dict[str, object]] = {}
    for peer in peers:
        print(f"{peer}, {limits.keys} keys, {seconds} s ...", file=sys.stderr)
        try:
            found[peer] = measure(peer, limits, seconds)
        except Skipped as skipped:
            print(f"{peer} is left out: {skipped}", file=sys.stderr)
    return found


if __name__ == "__main__":
    sys.exit(main())
