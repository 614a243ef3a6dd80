"""
Makes the tables in src/swarmgate/lab/data from traces and recordings: python benchmarks/lab_tables.py DATA_FOLDER

DATA_FOLDER holds traces/AzureLLMInferenceTrace_conv.csv, traces/mooncake_conversation_trace.jsonl.gz,
traces/agents/chatdev_llm_calls.jsonl, latency/llm_calls.csv and latency/latency_model_fit.csv; their sources are named in
the tables.
"""

import csv
import gzip
import json
import sys
from itertools import pairwise
from pathlib import Path

from swarmgate.lab.quantiles import Quantiles

OUT = Path(__file__).parent.parent / "src" / "swarmgate" / "lab" / "data"
CASSETTES = (
    "recorded test calls of crewAI, pydantic-ai, openllmetry, mirascope, ruby_llm, openinference, dd-trace-py, paper-qa"
)


def knots(values, steps=100):
    return list(Quantiles.of(values, steps).knots)


def rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def latency(data):
    calls = [call for call in rows(data / "latency/llm_calls.csv") if call["status"] == "200"]
    models = {}
    for fit in rows(data / "latency/latency_model_fit.csv"):
        if fit["model"] == "claude-sonnet-4-5":  # one call of 134 s among 65 makes its line 90 ms a token: no law
            continue
        line = (int(fit["intercept_ms"]), round(float(fit["ms_per_completion_token"]) * 1000))
        models[fit["model"]] = {
            "calls": int(fit["n"]),
            "intercept_ms": line[0],
            "us_per_token": line[1],
            "p50_p90_p99_ms": [round(float(fit[f"p{p}_ms"])) for p in (50, 90, 99)],
            "spread_permille": knots(spread(calls, fit, *line)),
        }
    return {
        "about": "per model: whole answer = (intercept + us_per_token * output tokens) * spread; quantiles at every 1 %",
        "source": f"server times of 6,159 {CASSETTES}; read 2026-11",
        "licence": "MIT / Apache-2.0 (the recordings'); numbers computed from them",
        "first_byte_ms": knots(
            [round(float(c["processing_ms"])) for c in calls if c["stream"] == "1" and c["processing_ms"]]
        ),
        "models": models,
    }


def spread(calls, fit, intercept_ms, us_per_token):
    for call in calls:
        ms = call["processing_ms"] or call["upstream_ms"]
        same = call["provider"] == fit["provider"] and call["model_requested"] == fit["model"] and call["stream"] == "0"
        if same and ms and call["completion_tokens"]:
            fitted_us = intercept_ms * 1000 + us_per_token * int(call["completion_tokens"])
            yield round(float(ms) * 1_000_000 / fitted_us)


def lengths(data):
    azure = rows(data / "traces/AzureLLMInferenceTrace_conv.csv")
    with gzip.open(data / "traces/mooncake_conversation_trace.jsonl.gz", "rt", encoding="utf-8") as file:
        mooncake = [json.loads(line) for line in file]
    with (data / "traces/agents/chatdev_llm_calls.jsonl").open(encoding="utf-8") as file:
        chatdev = [json.loads(line) for line in file]
    return {
        "about": "tokens of prompts and outputs, and the pace of agents; quantiles at every 1 %",
        "dense": {
            "source": "Azure/AzurePublicDataset b469a113, AzureLLMInferenceTrace_conv (Splitwise, ISCA'24), 19,366 requests",
            "licence": "CC-BY-4.0",
            "prompt_tokens": knots(int(row["ContextTokens"]) for row in azure),
            "output_tokens": knots(int(row["GeneratedTokens"]) for row in azure),
        },
        "long": {
            "source": "kvcache-ai/Mooncake 3b5a5941, conversation trace, 12,031 requests",
            "licence": "Apache-2.0",
            "prompt_tokens": knots(row["input_length"] for row in mooncake),
            "output_tokens": knots(row["output_length"] for row in mooncake),
        },
        "team": {
            "source": "OpenBMB/ChatDev branch chatdev1.0 31fd9944, WareHouse logs, 1,381 calls of 56 sessions",
            "licence": "Apache-2.0",
            "prompt_tokens": knots(row["prompt_tokens"] for row in chatdev if row["prompt_tokens"]),
            "output_tokens": knots(row["completion_tokens"] for row in chatdev if row["completion_tokens"]),
            "gap_permille_of_mean": gaps(chatdev),
        },
    }


def gaps(chatdev):
    """Start to start within a session, cut at 5 min (a person paused the run), as a share of the mean."""
    starts = {}
    for row in chatdev:
        starts.setdefault(row["session"], []).append(row["t_start_s"])
    found = [
        min(b - a, 300) for times in starts.values() for a, b in pairwise(sorted(t for t in times if t is not None))
    ]
    gap = Quantiles.of(round(seconds * 1000) for seconds in found)
    return [knot * 1000 // gap.mean() for knot in gap.knots]


def write(name, content):
    text = json.dumps(content, indent=1)
    lines, inside = [], False
    for line in text.splitlines():  # one list a line
        if inside:
            lines[-1] += line.strip() if line.strip().startswith("]") else line.strip() + " " * line.endswith(",")
            inside = not line.strip().startswith("]")
        else:
            lines.append(line)
            inside = line.endswith("[")
    (OUT / f"{name}.json").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    OUT.mkdir(exist_ok=True)
    write("latency_fit", latency(folder))
    write("lengths", lengths(folder))
