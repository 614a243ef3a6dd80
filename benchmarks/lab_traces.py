"""
Makes the traces in src/swarmgate/lab/data/traces: python benchmarks/lab_traces.py DATA_FOLDER

DATA_FOLDER holds the published files named in FILES below; what is taken of them, and why it may be, stands beside each.
Only numbers and host names are taken. Every sample is a piece without gaps, so that its bursts are the trace's own.
"""

import csv
import gzip
import json
import sys
from io import StringIO
from pathlib import Path
from urllib.parse import urlsplit

from swarmgate.lab.traces.reading import read_trace
from swarmgate.lab.traces.rows import TraceCall

OUT = Path(__file__).parent.parent / "src" / "swarmgate" / "lab" / "data" / "traces"
COLUMNS = ("t_ms", "prompt_tokens", "output_tokens", "session", "hosts")
FIRST = 6_000


def open_loop(path):
    return list(read_trace(path).calls[:FIRST])


def sessions(path):
    calls = sorted(read_trace(path).calls, key=lambda call: (call.session, call.t_ms))
    numbers = {name: str(number) for number, name in enumerate(sorted({call.session for call in calls}), 1)}
    return [call._replace(session=numbers[call.session]) for call in calls]


def hours(data):
    """Sessions per hour, evenly spread over their hour; lengths are those of the recorded calls, in turn."""
    with (data / "traces/burstgpt_hourly_sessions.csv").open() as file:
        counts = [(int(row["time_bin"]), int(row["session_count"])) for row in csv.DictReader(file)]
    lengths = read_trace(data / "traces/burstgpt_slice.csv").calls
    busy = [sum(count for _, count in counts[at : at + 24]) > FIRST // 2 for at in range(len(counts))]
    start = next(at for at, (_, count) in enumerate(counts) if count > 40 and busy[at])
    calls = []
    for begin_s, count in counts[start : start + 72]:
        for number in range(count):
            like = lengths[len(calls) % len(lengths)]
            t_ms = begin_s * 1_000 + number * 3_600_000 // count
            calls.append(TraceCall(t_ms, like.prompt_tokens, like.output_tokens))
    return calls[:FIRST]


def research(data):
    """One session per task: a step and its gap from deer-flow, then four of the hosts whose pages the task cites."""
    steps = sessions(data / "traces/agents/deerflow_v2_steps.jsonl")
    with (data / "egress/deep_research_task_urls.jsonl").open() as file:
        tasks = [json.loads(line)["urls"] for line in file]
    calls = []
    for number, urls in enumerate(tasks, 1):
        hosts = [host for host in (urlsplit(url).hostname for url in urls) if host and host.isascii()]
        t_ms = 0
        for at in range(0, len(hosts), 4):
            like = steps[len(calls) % len(steps)]
            cited = tuple(hosts[at : at + 4])
            calls.append(TraceCall(t_ms, like.prompt_tokens, like.output_tokens, str(number), cited))
            after = steps[len(calls) % len(steps)]
            t_ms += after.t_ms - like.t_ms if after.session == like.session else 0
    return calls


FILES = {
    "azure-conversation": (
        lambda data: open_loop(data / "traces/AzureLLMInferenceTrace_conv.csv"),
        "Azure/AzurePublicDataset b469a113, AzureLLMInferenceTrace_conv (Splitwise, ISCA'24), the first 6,000 calls",
        "CC-BY-4.0",
    ),
    "mooncake-conversation": (
        lambda data: open_loop(data / "traces/mooncake_conversation_trace.jsonl.gz"),
        "kvcache-ai/Mooncake 3b5a5941, conversation trace, the first 6,000 calls",
        "Apache-2.0",
    ),
    "burstgpt-hours": (
        hours,
        "HPMLL/BurstGPT: sessions per hour (by perryz0/BurstGPT) from a busy day on; lengths of 115 recorded calls in turn",
        "CC-BY-4.0",
    ),
    "chatdev": (
        lambda data: sessions(data / "traces/agents/chatdev_llm_calls.jsonl"),
        "OpenBMB/ChatDev 31fd9944 (branch chatdev1.0), 56 sessions of software teams from WareHouse/*.log",
        "Apache-2.0",
    ),
    "deer-flow": (
        lambda data: sessions(data / "traces/agents/deerflow_v2_steps.jsonl"),
        "bytedance/deer-flow f1f4af99, 13 sessions of deep-research agents from frontend/public/demo",
        "MIT",
    ),
    "deep-research": (
        research,
        "Ayanami0730/deep_research_bench 214741e4: hosts cited by 100 tasks; steps of bytedance/deer-flow f1f4af99 in turn",
        "Apache-2.0 and MIT",
    ),
}


def as_csv(calls):
    out = StringIO()
    last = 5 if any(call.hosts for call in calls) else 4 if calls[0].session else 3
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS[:last])
    writer.writerows([*call[:4], " ".join(call.hosts)][:last] for call in calls)
    return out.getvalue().encode()


def main(data):
    OUT.mkdir(exist_ok=True)
    index = {}
    for name, (make, source, licence) in FILES.items():
        calls = make(data)
        (OUT / f"{name}.csv.gz").write_bytes(gzip.compress(as_csv(calls), 9, mtime=0))
        index[name] = {"calls": len(calls), "source": source, "licence": licence}
    (OUT / "index.json").write_text(json.dumps(index, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
