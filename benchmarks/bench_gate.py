"""The gate beside nginx: requests per second of 2 KB and 130 KB, latency at 500 a second, CPU per streamed chunk, memory."""

import argparse
import json
import os
import sys
from datetime import UTC, datetime

import gate_lab as lab


def measure(*, rounds: int, seconds: int, count: int) -> dict[str, object]:
    """Each figure from nginx and the gate in turn, `rounds` times; medians."""
    lab.build()
    with (
        lab.start_upstream() as upstream,
        lab.start_nginx(upstream.port) as nginx,
        lab.start_gate(upstream.port) as gate,
    ):
        both = (nginx, gate)
        for server in both:
            lab.flood(server, 1)
        figures = {"idle_rss_mib": {server.name: round(server.rss_mib, 1) for server in both}}
        for name, probe in (
            ("flood", lambda server: lab.flood(server, seconds)),
            ("big", lambda server: lab.flood(server, seconds, "post_big.lua")),
            ("steady", lambda server: lab.steady(server, seconds)),
            ("streams", lambda server: lab.streams(server, count, seconds)),
        ):
            turns = [[probe(server) for server in both] for _ in range(rounds)]
            figures[name] = {
                server.name: lab.medians([turn[index] for turn in turns]) for index, server in enumerate(both)
            }
        figures["rss_mib"] = {server.name: round(server.rss_mib, 1) for server in both}
    figures["rps_ratio"] = round(figures["flood"]["gate"]["rps"] / figures["flood"]["nginx"]["rps"], 3)
    figures["big_ratio"] = round(figures["big"]["gate"]["rps"] / figures["big"]["nginx"]["rps"], 3)
    figures["cpu_ratio"] = round(figures["flood"]["nginx"]["cpu_us"] / figures["flood"]["gate"]["cpu_us"], 3)
    return figures


def table(figures: dict[str, object], count: int) -> str:
    flood, big, steady, streams = (figures[name] for name in ("flood", "big", "steady", "streams"))
    rows = [
        ("requests/s, 64 connections", *[f"{flood[name]['rps']:,.0f}" for name in ("nginx", "gate")]),
        ("CPU us/request", *[f"{flood[name]['cpu_us']:.1f}" for name in ("nginx", "gate")]),
        ("requests/s of 130 KB", *[f"{big[name]['rps']:,.0f}" for name in ("nginx", "gate")]),
        ("CPU us/request of 130 KB", *[f"{big[name]['cpu_us']:.1f}" for name in ("nginx", "gate")]),
        (
            "p50 / p99 us at 500/s",
            *[f"{steady[name]['p50']:.0f} / {steady[name]['p99']:.0f}" for name in ("nginx", "gate")],
        ),
        (f"CPU us/chunk, {count} streams", *[f"{streams[name]['cpu_us']:.1f}" for name in ("nginx", "gate")]),
        ("chunks/s", *[f"{streams[name]['chunks_s']:,.0f}" for name in ("nginx", "gate")]),
        (
            "delay p50 / p99 ms",
            *[f"{streams[name]['p50_ms']:.1f} / {streams[name]['p99_ms']:.1f}" for name in ("nginx", "gate")],
        ),
        (
            "RSS MiB, idle / after",
            *[f"{figures['idle_rss_mib'][name]} / {figures['rss_mib'][name]}" for name in ("nginx", "gate")],
        ),
    ]
    lines = ["| | nginx | swarmgate |", "|---|---|---|", *[f"| {' | '.join(row)} |" for row in rows]]
    load = os.getloadavg()[0]
    ratios = f"{figures['rps_ratio']}, {figures['cpu_ratio']}, {figures['big_ratio']}"
    lines.append(f"| gate / nginx: requests, CPU, requests of 130 KB | 1 | {ratios} |")
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, load average {load:.1f}\n\n" + "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, epilog="Example: python benchmarks/bench_gate.py --quick")
    parser.add_argument("--quick", action="store_true", help="one short round, under a minute")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--streams", type=int, default=1_000)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if absent := lab.missing():
        print(f"bench_gate: skipped, not here: {absent}")
        return 0
    rounds, seconds = (1, 3) if asked.quick else (asked.rounds, asked.seconds)
    figures = measure(rounds=rounds, seconds=seconds, count=asked.streams)
    print(json.dumps(figures) if asked.json else table(figures, asked.streams))
    return 0


if __name__ == "__main__":
    sys.exit(main())
