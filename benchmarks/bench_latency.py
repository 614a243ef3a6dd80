"""What the gate adds to the latency of calls at 500 a second, beside nginx as a plain proxy (pairs.py compares)."""

import argparse
import json
import os
import sys

import gate_lab as lab
from pairs import Side, compare


def measure(pairs: int, form: str) -> dict[str, object]:
    """Both servers on CPU 0, load and stand-in on CPU 1."""
    lab.build()
    os.sched_setaffinity(0, {1})
    with (
        lab.start_upstream() as upstream,
        lab.start_nginx(upstream.port) as nginx,
        lab.start_gate(upstream.port, form) as gate,
    ):
        return compare([Side(server.name, server.port, pairs) for server in (nginx, gate)], pairs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, epilog="Example: python benchmarks/bench_latency.py --quick")
    parser.add_argument("--quick", action="store_true", help="eight pairs")
    parser.add_argument("--pairs", type=int, default=160, help="of halves of 0.8 s")
    parser.add_argument("--json", action="store_true", help="for programs")
    asked = parser.parse_args()
    if absent := lab.missing():
        print(f"bench_latency: skipped, not here: {absent}")
        return 0
    pairs = 8 if asked.quick else asked.pairs
    found = {form: measure(pairs, form) for form in lab.forms()}
    if asked.json:
        print(json.dumps(found))
        return 0
    for form, figures in found.items():
        print(f"{form}\n{lab.listed(figures)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
