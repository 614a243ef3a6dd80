"""A load run against stand-ins: what is wanted leaves on time, and every fate is told."""

import asyncio
import json
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

sys.path.append(str(Path(__file__).parent.parent / "gate"))

from stage import UNARY, StandIn, either, whole

from swarmgate.cli import app
from swarmgate.lab.agents.endpoint import header_of, place_of
from swarmgate.lab.errors import LabError
from swarmgate.lab.load import at_percent


class Endpoint:
    """A stand-in on a loop of its own thread."""

    def __init__(self, script):
        self.stand_in = StandIn(script)
        self.loop = asyncio.new_event_loop()
        self.port = 0
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        async def serve():
            self.stop = asyncio.Event()
            server = await asyncio.start_server(self.stand_in.serve, "127.0.0.1", 0, limit=2**22)
            self.port = server.sockets[0].getsockname()[1]
            self._ready.set()
            await self.stop.wait()
            server.close()
            await self.stand_in.close()

        self.loop.run_until_complete(serve())
        self.loop.close()

    def __enter__(self):
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *_error):
        self.loop.call_soon_threadsafe(self.stop.set)
        self._thread.join(20)


def run(*arguments, env=None):
    done = CliRunner().invoke(app, ["load", *arguments], env=env or {})
    return done.exit_code, done.stdout, done.stderr


def test_recorded_traffic_reaches_the_endpoint_with_its_key():
    with Endpoint(either) as on:
        url = f"http://127.0.0.1:{on.port}/v1"
        code, out, _ = run(
            "mix",
            "--to",
            url,
            "--agents",
            "40",
            "--rate",
            "20",
            "--seconds",
            "2",
            "--header",
            "X-Wanted: by the endpoint: 7",
            "--json",
            env={"OPENAI_API_KEY": "sk-7"},
        )
    said = json.loads(out)
    assert code == 0
    assert said["answered"] == said["statuses"]["200"] == said["wanted"] - said["open_at_end"]
    assert len(on.stand_in.hits) >= said["answered"] > 10
    assert {hit.headers["authorization"] for hit in on.stand_in.hits} == {"Bearer sk-7"}
    assert {hit.headers["x-wanted"] for hit in on.stand_in.hits} == {"by the endpoint: 7"}
    assert {hit.said.get("stream", False) for hit in on.stand_in.hits} == {True, False}
    assert said["warning"] == ""


def test_refusals_are_results_and_nothing_is_repeated():
    async def script(_stand_in, _hit, writer):
        writer.write(whole({"error": {"message": "slow down", "code": "too_fast"}}, "429 Too Many Requests"))

    with Endpoint(script) as on:
        code, out, _ = run(
            "burstgpt-hours",
            "--to",
            f"http://127.0.0.1:{on.port}/v1/",
            "--agents",
            "5",
            "--rate",
            "10",
            "--seconds",
            "1",
        )
    assert code == 1
    assert "status 429" in out
    assert ", too_fast" in out
    assert "unfit for sizing" in out
    assert len({hit.said["user"] for hit in on.stand_in.hits}) == len(on.stand_in.hits)


def test_an_endpoint_that_hangs_does_not_look_fast():
    async def script(stand_in, _hit, writer):
        if len(stand_in.hits) % 2:
            await stand_in.closed.wait()
        writer.write(whole(UNARY))

    with Endpoint(script) as on:
        code, out, _ = run(
            "burstgpt-hours",
            "--to",
            f"http://127.0.0.1:{on.port}/v1",
            "--agents",
            "30",
            "--rate",
            "20",
            "--seconds",
            "1",
            "--unary",
            "--json",
        )
    said = json.loads(out)
    assert code == 0
    assert said["open_at_end"] > 0
    assert said["p99_ms"] > 1_000


@pytest.mark.parametrize("line", ["", "x", ": y", "a b: c", "x: y\r\nz: 1", "x: \u00e9"])
def test_what_is_no_header_is_refused(line):
    with pytest.raises(LabError, match="header: "):
        header_of(line)


def test_nobody_there_and_bad_input(tmp_path):
    assert run("mix", "--to", "http://127.0.0.1:9/v1", "--agents", "40", "--rate", "20", "--seconds", "1")[0] == 3
    for url in ("ftp://x/v1", "http://me:hidden@x/v1", "http://hidden@x:none/v1", "http://x/v1?key=hidden"):
        code, _, said = run("mix", "--to", url, "--agents", "20")
        assert code == 2
        assert "is no base URL without user, password and query" in said
        assert "hidden" not in said
    broken = tmp_path / "broken.csv"
    broken.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00,many,3\n")
    code, _, said = run(str(broken), "--to", "http://127.0.0.1:9/v1")
    assert code == 2
    assert "row 2, column ContextTokens" in said


@pytest.mark.parametrize(
    ("url", "path", "host"),
    [
        ("http://127.0.0.1:8787/v1", b"/v1/chat/completions", b"127.0.0.1:8787"),
        ("http://127.0.0.1:8787/v1/", b"/v1/chat/completions", b"127.0.0.1:8787"),
        ("http://127.0.0.1:8787/v1/chat/completions", b"/v1/chat/completions", b"127.0.0.1:8787"),
        ("http://127.0.0.1", b"/chat/completions", b"127.0.0.1"),
    ],
)
def test_where_a_base_url_leads(url, path, host):
    place = place_of(url)
    assert (place.path, place.host) == (path, host)


@pytest.mark.parametrize("url", ["", "x", "http://", "http://a:b", "http://u:p@127.0.0.1", "http://127.0.0.1/?q"])
def test_what_is_no_base_url(url):
    with pytest.raises(LabError) as caught:
        place_of(url)
    assert caught.value.field == "to"


@given(st.lists(st.integers(0, 10**6), min_size=1), st.integers(1, 100))
def test_a_percentile_is_one_of_the_values_with_so_many_below(values, percent):
    ordered = sorted(values)
    found = at_percent(ordered, percent)
    assert sum(value <= found for value in ordered) * 100 >= percent * len(ordered)
    assert sum(value < found for value in ordered) * 100 < percent * len(ordered)
