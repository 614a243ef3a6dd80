"""
swarmgate beside other gateways, by the same tools: `swarmgate load` before each, a stand-in with its witness behind.

200 agents, 10 calls a second of the default mix, unary, four keys whose limits a good router need not break: what LiteLLM can
carry on one core. Each is measured alone, in turn, against fresh stand-ins. Prints the table of README.md.
"""

import argparse
import contextlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from others import MODEL, PEERS, Ground, Skipped

import gate_lab as lab
from swarmgate.lab.standin.plan import ProviderPlan, StandInPlan
from swarmgate.lab.standin.witness_log import Seen, read_rows, witnesses

AGENTS, CALLS_PER_S = 200, 10
KEYS, WINDOW_S = 12, 10
REQUESTS, TOKENS = (
    14,
    200_000,
)  # per key and window: 16.8 calls a second together, so that 10 are 60 % of what is published
START_S = 90
SWARMGATE = str(Path(sys.executable).parent / "swarmgate")


def stand_in(port: int) -> StandInPlan:
    window = {"kind": "sliding_log", "window_ms": WINDOW_S * 1_000}
    limits = [[window | {"limit": REQUESTS}, window | {"limit": TOKENS, "unit": "tokens"}]]
    told = {"name": "provider", "dialect": "openai", "keys": KEYS, "scopes": KEYS, "limits": limits, "port": port}
    return StandInPlan(providers=(ProviderPlan.model_validate(told),), seed=1)


def measure(peer: str, seconds: int) -> dict[str, object]:
    """One peer's figures. Errors: `Skipped`."""
    with tempfile.TemporaryDirectory() as made, contextlib.ExitStack() as ends:
        folder, upstream = Path(made), lab.free_port()
        plan = stand_in(upstream)
        (folder / "plan.json").write_text(plan.model_dump_json())
        witness = folder / "witness"
        keys = [plan.providers[0].key_of(number) for number in range(1, KEYS + 1)]
        url = f"http://127.0.0.1:{upstream}/v1"
        port, callers_key = lab.free_port(), f"sk-{secrets.token_hex(32)}"
        start = PEERS[peer](Ground(port, url, keys, REQUESTS, TOKENS, WINDOW_S, folder, callers_key))
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
        return json.loads(done.stdout) | judged(witness) | {"cpu_s": round(used_s, 1), "rss_mib": round(memory)}


def judged(witness: Path) -> dict[str, int]:
    """What the provider saw: arrivals, refusals, and arrivals beyond a published limit in some window."""
    rows = list(read_rows(witness))
    over = sum(
        seen.over_limit(REQUESTS, WINDOW_S * 1_000) + seen.over_limit(TOKENS, WINDOW_S * 1_000, "tokens")
        for seen in witnesses(iter(rows)).values()
    )
    arrivals = [row for row in rows if isinstance(row, Seen)]
    return {"arrivals": len(arrivals), "refused": sum(row.status == 429 for row in arrivals), "over_limit": over}


def row(peer: str, said: dict[str, object]) -> str:
    statuses = said["statuses"]
    others = sum(count for status, count in statuses.items() if status not in {"200", "429"})
    cells = (
        f"{said['answered_per_s']} of {said['wanted_per_s']}, {said['open_at_end']}",
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
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    seconds = 20 if asked.quick else asked.seconds
    found: dict[str, dict[str, object]] = {}
    for peer in asked.peers.split(","):
        try:
            found[peer] = measure(peer, seconds)
        except Skipped as skipped:
            print(f"{peer} is left out: {skipped}", file=sys.stderr)
    if asked.json:
        print(json.dumps(found))
        return 0
    load = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, load average {os.getloadavg()[0]:.1f}"
    print(f"{load}; {AGENTS} agents, {CALLS_PER_S} calls/s of the mix, unary, {seconds} s each\n")
    print(
        "| | answered/s of wanted, open at the end | 429s agents saw, other failures | 429s of the provider | over a limit",
        end="",
    )
    print(" | P50 / P99 ms | CPU s, MiB |\n|---|---|---|---|---|---|---|")
    for peer, said in found.items():
        print(row(peer, said))
    return 0


if __name__ == "__main__":
    sys.exit(main())
