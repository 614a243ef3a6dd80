"""
What an idle connection costs in the gate: memory per plain connection, each after one request of 130 KB.

Connections are opened, send their request, read the answer, and stay. Counted is the data process's memory that no file
backs, beyond what it used once a few had done the same; what the system keeps for the sockets is not in it.
"""

import argparse
import asyncio
import json
import os
import re
import resource
import sys
from datetime import UTC, datetime

import gate_lab as lab

AT_ONCE = 32
WARM = 256
QUESTION = "Summarise the experimental protocol and list the open questions. " * 2_000
BODY = json.dumps({"model": "gpt-4o-mini", "messages": [{"role": "user", "content": QUESTION}]}).encode()
HEAD = (
    f"POST {lab.PATH} HTTP/1.1\r\nHost: gate\r\nContent-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n"
)
_LENGTH = re.compile(rb"content-length: (\d+)")


async def visit(port: int, room: asyncio.Semaphore) -> asyncio.StreamWriter:
    """One connection, its request answered."""
    async with room:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HEAD.encode() + BODY)
        head = await reader.readuntil(b"\r\n\r\n")
        status = head.partition(b"\r\n")[0]
        if b" 200 " not in status:
            raise SystemExit(f"the gate answered {status!r}")
        await reader.readexactly(int(_LENGTH.search(head.lower())[1]))
        return writer


async def measure(gate: lab.Server, count: int) -> dict[str, float]:
    """KiB per connection, and the gate's memory before and with them."""
    room = asyncio.Semaphore(AT_ONCE)
    held = await asyncio.gather(*[visit(gate.port, room) for _ in range(WARM)])
    before, files = gate.own_kib, gate.open_files
    held += await asyncio.gather(*[visit(gate.port, room) for _ in range(count)])
    after, more = gate.own_kib, gate.open_files - files
    if more < 0.9 * count:
        raise SystemExit(f"only {more} of {count} connections were still open: the machine is too slow to ask")
    for writer in held:
        writer.transport.abort()
    return {
        "connections": more,
        "kib_each": round((after - before) / more, 2),
        "before_mib": round(before / 1024, 1),
        "with_mib": round(after / 1024, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, epilog="Example: python benchmarks/bench_idle.py --quick")
    parser.add_argument("--quick", action="store_true", help="2,000 connections, a few seconds")
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if absent := lab.missing():
        print(f"bench_idle: skipped, not here: {absent}")
        return 0
    count = 2_000 if asked.quick else asked.connections
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    lab.build()
    found = {}
    for form in lab.forms():
        with lab.start_upstream() as upstream, lab.start_gate(upstream.port, form) as gate:
            found[form] = asyncio.run(measure(gate, count))
    if asked.json:
        print(json.dumps(found))
        return 0
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, load average {os.getloadavg()[0]:.1f}\n")
    print("| | connections | KiB each | MiB before | with them |\n|---|---|---|---|---|")
    for form, figures in found.items():
        print("| {} | {connections:,} | {kib_each} | {before_mib} | {with_mib} |".format(form, **figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
