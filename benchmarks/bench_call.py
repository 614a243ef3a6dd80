"""What one call costs the gate itself, without sockets: microseconds, Python calls and bytecodes, per unary call and per chunk."""

import argparse
import json
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent / "tests" / "gate"), str(Path(__file__).parent.parent / "tests")]

from stage import DONE, LAST, STREAM_HEAD, UNARY, framed, token, whole  # noqa: E402  the path is set above
from test_cost import CAPS, TEXT, ask, counted, ready  # noqa: E402  see above

BATCH = 20


def best_us(act, seconds: float) -> float:
    """The fastest batch: on a busy machine the only one that says something about the code."""
    best = float("inf")
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        for _ in range(BATCH):
            act()
        best = min(best, time.perf_counter() - began)
    return best / BATCH * 1e6


def loop_ns(seconds: float) -> float:
    """Nanoseconds of one turn of an empty loop, to compare machines and moments by."""

    def turns() -> None:
        total = 0
        for number in range(1_000):
            total += number

    return best_us(turns, seconds)


def bytecodes(act) -> int:
    """How many instructions of the gate's own code `act` runs: a busy machine does not change it, a Python release may."""
    count = 0

    def trace(frame, event, _argument):
        nonlocal count
        if "/swarmgate/" not in frame.f_code.co_filename:
            return None
        if event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(None)
    return count


def capped_bytecodes() -> int:
    """The same call by an agent of a team, both with caps: thirteen budgets instead of six."""
    asked = ask(stream=b"false", words=b"x-swarmgate-agent: bio-7\r\nx-swarmgate-task-type: literature\r\n")
    bench, end = ready(TEXT + CAPS, asked)

    def call() -> None:
        bench.client.data_received(asked)
        end.data_received(whole(UNARY))

    call()
    bench.pass_time(1)
    return bytecodes(call)


def measure(seconds: float) -> dict[str, float]:
    """Unary calls on a kept connection, then chunks of one stream."""
    bench, end = ready()
    asked, answered = ask(stream=b"false"), whole(UNARY)

    def call() -> None:
        bench.client.data_received(asked)
        end.data_received(answered)
        bench.wire.written.clear()

    call_us = best_us(call, seconds)
    figures = {"call_us": round(call_us, 1), "call_python_calls": len(counted(call)) - 1}
    bench.pass_time(1)
    figures |= {"call_bytecodes": bytecodes(call), "call_bytecodes_with_caps": capped_bytecodes()}
    bench.client.data_received(ask(stream=b"true"))
    end.data_received(STREAM_HEAD + framed(token("a")))
    chunk = framed(token("b"))

    def relay() -> None:
        end.data_received(chunk)
        bench.wire.written.clear()

    figures |= {"chunk_us": round(best_us(relay, seconds), 2), "chunk_python_calls": len(counted(relay)) - 1}
    end.data_received(framed(DONE) + LAST)
    assert not bench.bugs
    return figures | {"empty_loop_ns": round(loop_ns(seconds / 4), 1)}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, epilog="Example: python benchmarks/bench_call.py --quick")
    parser.add_argument("--quick", action="store_true", help="under five seconds")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    figures = measure(1.5 if asked.quick else 10)
    if asked.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:20} {value:>8,}")


if __name__ == "__main__":
    main()
