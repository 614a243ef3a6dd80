"""
The gate, and its compiled form where `make compiled` has made it, beside nginx.

Requests per second of 2 KB and 130 KB, latency at 500 a second, CPU per streamed chunk, memory.
"""

import argparse
import contextlib
import json
import os
import sys
from datetime import UTC, datetime

import gate_lab as lab


def measure(*, rounds: int, seconds: int, count: int, control: bool) -> dict[str, dict[str, object]]:
    """Each figure of each server, all of them in turn, `rounds` times; medians."""
    lab.build()
    with lab.start_upstream() as upstream, contextlib.ExitStack() as running:
        servers = [running.enter_context(lab.start_nginx(upstream.port))]
        servers += [running.enter_context(lab.start_gate(upstream.port, name, control=control)) for name in lab.forms()]
        for server in servers:
            lab.flood(server, 1)
        figures = {server.name: {"idle_rss_mib": round(server.rss_mib, 1)} for server in servers}
        for name, probe in (
            ("flood", lambda server: lab.flood(server, seconds)),
            ("big", lambda server: lab.flood(server, seconds, "post_big.lua")),
            ("steady", lambda server: lab.steady(server, seconds)),
            ("streams", lambda server: lab.streams(server, count, seconds)),
            ("slow", lambda server: lab.streams(server, 2 * count, seconds, slow=True)),
        ):
            turns = [[probe(server) for server in servers] for _ in range(rounds)]
            for index, server in enumerate(servers):
                figures[server.name][name] = lab.medians([turn[index] for turn in turns])
        for server in servers:
            figures[server.name]["rss_mib"] = round(server.rss_mib, 1)
    first = figures["nginx"]
    for found in figures.values():
        found["rps_ratio"] = round(found["flood"]["rps"] / first["flood"]["rps"], 3)
        found["cpu_ratio"] = round(first["flood"]["cpu_us"] / found["flood"]["cpu_us"], 3)
        found["big_ratio"] = round(found["big"]["rps"] / first["big"]["rps"], 3)
    return figures


ROWS = {
    "requests/s, 64 connections": "{flood[rps]:,.0f}",
    "CPU us/request": "{flood[cpu_us]:.1f}",
    "requests/s of 130 KB": "{big[rps]:,.0f}",
    "CPU us/request of 130 KB": "{big[cpu_us]:.1f}",
    "p50 / p99 us at 500/s": "{steady[p50]:.0f} / {steady[p99]:.0f}",
    "streams of 50 chunks/s: CPU us/chunk, of a core": "{streams[cpu_us]:.1f}, {streams[core]:.0%}",
    "chunks/s": "{streams[chunks_s]:,.0f}",
    "delay p50 / p99 ms": "{streams[p50_ms]:.1f} / {streams[p99_ms]:.1f}",
    "later than 50 ms": "{streams[late]:.3%}",
    "twice as many of 25 chunks/s: CPU us/chunk, of a core": "{slow[cpu_us]:.1f}, {slow[core]:.0%}",
    "their delay p50 / p99 ms": "{slow[p50_ms]:.1f} / {slow[p99_ms]:.1f}",
    "later than 50 ms, of them": "{slow[late]:.3%}",
    "RSS MiB, idle / after": "{idle_rss_mib} / {rss_mib}",
    "to nginx: requests, CPU, requests of 130 KB": "{rps_ratio}, {cpu_ratio}, {big_ratio}",
}


def table(figures: dict[str, dict[str, object]], count: int) -> str:
    """A row for each figure, a column for each server."""
    lines = [f"| | {' | '.join(figures)} |", "|---|" + "---|" * len(figures)]
    lines += [
        f"| {name} | {' | '.join(form.format(**found) for found in figures.values())} |" for name, form in ROWS.items()
    ]
    if "compiled" not in figures:
        lines.append("\nThe compiled form is not here: `make compiled`.")
    title = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, load average {os.getloadavg()[0]:.1f}, {count} streams"
    return title + "\n\n" + "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, epilog="Example: python benchmarks/bench_gate.py --quick")
    parser.add_argument("--quick", action="store_true", help="one short round, under a minute")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--streams", type=int, default=1_000)
    parser.add_argument("--control", action="store_true", help="with their control processes, on the gate's CPU")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if absent := lab.missing():
        print(f"bench_gate: skipped, not here: {absent}")
        return 0
    rounds, seconds = (1, 3) if asked.quick else (asked.rounds, asked.seconds)
    figures = measure(rounds=rounds, seconds=seconds, count=asked.streams, control=asked.control)
    print(json.dumps(figures) if asked.json else table(figures, asked.streams))
    return 0


if __name__ == "__main__":
    sys.exit(main())
