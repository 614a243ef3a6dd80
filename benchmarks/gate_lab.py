"""
The place where gates are measured: a stand-in upstream and load from C tools, nginx beside it, every process on its CPU.

The tools lie beside this repository (../shared/bench: mock.c, uc.c, sc.c, post.lua, post_big.lua) and are compiled into .build. The
gate and nginx run on CPU 0, load and stand-in on CPU 1; each figure is taken from both in turn, so that a busy machine
disturbs both.
"""

import contextlib
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

HERE = Path(__file__).parent
COMPILED = HERE.parent / ".venv-compiled" / "bin" / "swarmgate"  # by `make compiled`
TOOLS = HERE.parent.parent / "shared" / "bench"
BUILD = HERE / ".build"
PATH = "/v1/chat/completions"
CALLER = {"WRK_MODEL": "gpt-4o-mini", "WRK_XH": "x-swarmgate-agent: bench"}
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
GATE = """
listen = "127.0.0.1:{port}"
[targets.up]
base_url = "http://127.0.0.1:{upstream}/v1"
keys = {{ {keys} }}
limits = ["900_000_000 per 1s"]
key_limits = ["900_000_000 per 1s", "900_000_000 tokens per 1s"]
[agents]
limits = ["900_000_000 per 1s", "900_000_000 tokens per 1s"]
"""
NGINX = """
worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log warn;
events {{ worker_connections 16384; }}
http {{
  access_log off;
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  upstream up {{ server 127.0.0.1:{upstream}; keepalive 2048; keepalive_requests 100000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096; keepalive_requests 100000000; client_body_buffer_size 256k;
    location / {{
      proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
    }}
  }}
}}
"""


def missing() -> str:
    """What is not here that the measurement needs; empty if nothing."""
    needed = [name for name in ("gcc", "wrk", "taskset") if shutil.which(name) is None]
    needed += [] if TOOLS.is_dir() else [str(TOOLS)]
    needed += [] if Path("/usr/sbin/nginx").exists() else ["nginx"]
    return ", ".join(needed)


def build() -> None:
    """Compile the tools that changed."""
    BUILD.mkdir(exist_ok=True)
    for name in ("mock", "uc", "sc"):
        source, tool = TOOLS / f"{name}.c", BUILD / name
        if not tool.exists() or tool.stat().st_mtime < source.stat().st_mtime:
            subprocess.run(["gcc", "-O2", "-w", str(source), "-o", str(tool), "-lm"], check=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A running process that listens; `cpu_s` is what it and its children have used."""

    def __init__(
        self, name: str, port: int, cpu: int, command: list[str], *, wait_s: float = 20, **options: object
    ) -> None:
        self.name = name
        self.port = port
        self._process = subprocess.Popen(
            ["taskset", "-c", str(cpu), *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options
        )
        try:
            wait_for(port, self._process, wait_s)
        except SystemExit:
            self._process.kill()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def _pids(self) -> list[int]:
        pid = self._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [pid, *map(int, children)]

    @property
    def cpu_s(self) -> float:
        fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in self._pids()]
        return sum(int(stat[11]) + int(stat[12]) for stat in fields) / TICKS_PER_S

    @property
    def rss_mib(self) -> float:
        sizes = [re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text()) for pid in self._pids()]
        return sum(int(size[1]) for size in sizes if size) / 1024

    @property
    def own_kib(self) -> int:
        """Memory of the process alone that no file backs."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(re.search(r"RssAnon:\s+(\d+)", status)[1])

    @property
    def open_files(self) -> int:
        return sum(1 for _ in Path(f"/proc/{self._process.pid}/fd").iterdir())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(40)
        if self._process.poll() is None:
            self._process.kill()


def wait_for(port: int, process: subprocess.Popen, wait_s: float) -> None:
    until_s = time.monotonic() + wait_s
    while time.monotonic() < until_s:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise SystemExit(f"nothing listens on {port}; the process ended with {process.poll()}")


def start_upstream(cpu: int = 1) -> Server:
    port = free_port()
    return Server("upstream", port, cpu, [str(BUILD / "mock"), str(port)])


def start_nginx(upstream: int) -> Server:
    port, folder = free_port(), BUILD / "nginx"
    folder.mkdir(exist_ok=True)
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port, upstream=upstream))
    return Server("nginx", port, 0, ["/usr/sbin/nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")])


def forms() -> dict[str, Path]:
    """The programs that can be measured here: of this Python, and compiled where that was made."""
    found = {"gate": Path(sys.executable).parent / "swarmgate", "compiled": COMPILED}
    return {name: program for name, program in found.items() if program.exists()}


def start_gate(upstream: int, name: str = "gate", *, control: bool = False) -> Server:
    """The gate, journal on; its control process belongs on another core, and here there is only the load's."""
    port, program = free_port(), forms()[name]
    keys = ", ".join(f'key-{number} = "env:BENCH_KEY"' for number in range(1, 21))
    file = BUILD / f"{name}.toml"
    file.write_text(GATE.format(port=port, upstream=upstream, keys=keys))
    state = BUILD / f"state of {name}"
    command = [str(program), "up", "--config", str(file), "--state", str(state)]
    command += [] if control else ["--no-control"]
    return Server(name, port, 0, command, env=os.environ | {"BENCH_KEY": "sk-bench"})


def _run(*command: str, **environment: str) -> str:
    done = subprocess.run(
        ["taskset", "-c", "1", *command], capture_output=True, text=True, check=True, env=os.environ | environment
    )
    return done.stdout


def flood(server: Server, seconds: int, body: str = "post.lua", **caller: str) -> dict[str, float]:
    """64 connections, each with its next request as soon as the last was answered; bodies of 2 KB, or `post_big.lua`'s."""
    before = server.cpu_s
    url = f"http://127.0.0.1:{server.port}{PATH}"
    said = _run("wrk", "-t1", "-c64", f"-d{seconds}", "-s", str(TOOLS / body), url, **CALLER | caller)
    used = server.cpu_s - before
    requests = int(re.search(r"(\d+) requests in", said)[1])
    bad = re.search(r"Non-2xx.*?(\d+)", said)
    if bad:
        raise SystemExit(f"{server.name}: {bad[1]} answers were no successes")
    return {"rps": float(re.search(r"Requests/sec:\s+([\d.]+)", said)[1]), "cpu_us": used / requests * 1e6}


def steady(server: Server, seconds: int, rate: int = 500, nice: int = 0) -> dict[str, float]:
    """A fixed rate; latency counts from the instant at which the request was due. Microseconds."""
    first = ["nice", "-n", str(nice)] if nice else []
    said = json.loads(_run(*first, str(BUILD / "uc"), str(server.port), str(rate), "64", str(seconds), PATH))
    return {"p50": said["p50"], "p99": said["p99"], "bad": said["bad"] + said["errs"]}


def streams(server: Server, count: int, seconds: int, *, slow: bool = False) -> dict[str, float]:
    """So many streams of 50 chunks a second, `slow` = 25; CPU time, and delays against the schedule in milliseconds."""
    ramp = count / 250
    before, began = server.cpu_s, time.monotonic()
    command = (str(BUILD / "sc"), str(server.port), str(count), "500", f"{ramp:g}", str(seconds), PATH)
    said = json.loads(_run(*command, **({"SLOW": "1"} if slow else {})))
    used, took = server.cpu_s - before, time.monotonic() - began
    # the ramp carries half of its streams on average; the window and the settling before it carry all
    chunks = said["chunks_s"] * (took - ramp / 2)
    return {
        "cpu_us": used / chunks * 1e6,
        "chunks_s": said["chunks_s"],
        "core": used / chunks * said["chunks_s"],
        "p50_ms": said["delay_us"]["p50"] / 1e3,
        "p99_ms": said["delay_us"]["p99"] / 1e3,
        "late": said["late50ms"],
        "errors": said["errs"] + said["bad"],
    }


def medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def listed(found: dict[str, object]) -> str:
    """Figures by name, a line each; a list is an interval."""
    lines = []
    for name, figure in found.items():
        figures = figure if isinstance(figure, list) else [figure]
        shown = ", ".join(f"{one:,.2f}" if abs(one) < 100 else f"{one:,.0f}" for one in figures)
        lines.append(f"{name:>44}: {shown}")
    return "\n".join(lines)
