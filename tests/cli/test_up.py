"""`swarmgate up` as people run it: what it prints, whom it serves, how it stops, how it fails."""

import contextlib
import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from typer.testing import CliRunner

from dispositions import found
from swarmgate.cli import app
from swarmgate.cli.configured import exports
from swarmgate.config.whole import parse
from swarmgate.control import data
from swarmgate.engine.disk import SystemDisk

COMMAND = str(Path(sys.executable).parent / "swarmgate")
KEY = "sk-canary-81c4"
ANSWER = {"choices": [{"message": {"content": "four"}}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}


class Provider:
    """Answers every request on a socket, the last one only when it is told to."""

    def __init__(self):
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.asked = threading.Event()
        self.go_on = threading.Event()
        self.keys = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                link, _ = self._socket.accept()
                threading.Thread(target=self._answer, args=(link,), daemon=True).start()

    def _answer(self, link):
        with link:
            while raw := link.recv(65_536):
                head, _, body = raw.partition(b"\r\n\r\n")
                self.keys += [line for line in head.split(b"\r\n") if line.startswith(b"authorization")]
                if json.loads(body).get("wait"):
                    self.asked.set()
                    self.go_on.wait(20)
                said = json.dumps(ANSWER).encode()
                link.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
                link.sendall(b"content-length: %d\r\n\r\n%b" % (len(said), said))

    def close(self):
        self._socket.close()


@pytest.fixture
def provider():
    with contextlib.closing(Provider()) as provider:
        yield provider


@contextlib.contextmanager
def running(tmp_path, provider, *arguments, **more):
    """The command with a key from the environment; gives the process and the URL that it printed."""
    environment = os.environ | {
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": f"http://127.0.0.1:{provider.port}/v1",
        "XDG_STATE_HOME": str(tmp_path),
        **more,
    }
    process = subprocess.Popen(
        [COMMAND, "up", "--port", "0", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        line = process.stdout.readline()
        assert line.startswith("export OPENAI_BASE_URL=http://127.0.0.1:")
        yield process, line.partition("=")[2].strip()
    finally:
        process.kill()
        process.wait()


def ask(url, **said):
    body = json.dumps({"model": "m", "messages": []} | said).encode()
    with urlopen(Request(f"{url}/chat/completions", body), timeout=20) as answer:
        return json.load(answer)


REFUSED = {
    "/chat/completions": (b'{"model":"m","model":"n"}', 400, "caller_bad_request"),
    "/responses": (b'{"model":', 400, "caller_bad_request"),
    "/batches/../../admin": (b"", 400, "caller_bad_request"),
    "/messages": (b'{"model":"m","max_tokens":-1}', 400, "caller_bad_request"),
}


def test_hi_20_without_assertions_it_does_the_same(tmp_path, provider):
    with running(tmp_path, provider, "--no-control", PYTHONOPTIMIZE="1") as (process, url):
        assert ask(url) == ANSWER
        for path, (body, status, code) in REFUSED.items():
            with pytest.raises(HTTPError) as caught:
                urlopen(Request(f"{url}{path}", body, {"x-swarmgate-agent": "a"}), timeout=20)
            with caught.value as refused:
                assert (refused.code, code in refused.read().decode()) == (status, True)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
        assert process.returncode == 0
    assert len(provider.keys) == 1


def test_it_serves_drains_and_never_shows_the_key(tmp_path, provider):
    with running(tmp_path, provider) as (process, url):
        assert ask(url) == ANSWER
        late = []
        thread = threading.Thread(target=lambda: late.append(ask(url, wait=True)))
        thread.start()
        assert provider.asked.wait(20)
        process.send_signal(signal.SIGTERM)
        assert any("stopping" in line for line in iter(process.stderr.readline, ""))
        provider.go_on.set()
        thread.join(20)
        assert late == [ANSWER]
        out, error = process.communicate(timeout=20)
        assert process.returncode == 0
    assert provider.keys == [f"authorization: Bearer {KEY}".encode()] * 2
    kept = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert b"answered" in kept  # the journal
    assert KEY not in out + error
    assert KEY.encode() not in kept


CONFIG = """
[targets.up]
base_url = "http://127.0.0.1:{port}/v1"
keys = {{ only = "env:OPENAI_API_KEY" }}
limits = ["{limit}"]
"""


def test_without_a_file_a_terminal_that_is_gone_stops_it_in_order(tmp_path, provider):
    with found(signal.SIG_DFL, signal.SIGHUP), running(tmp_path, provider, "--no-control") as (process, url):
        assert ask(url) == ANSWER
        process.send_signal(signal.SIGHUP)
        _, error = process.communicate(timeout=20)
        assert (process.returncode, "stopping" in error) == (0, True)


def test_what_nohup_started_goes_on_without_its_terminal(tmp_path, provider):
    with found(signal.SIG_IGN, signal.SIGHUP), running(tmp_path, provider, "--no-control") as (process, url):
        process.send_signal(signal.SIGHUP)
        assert [ask(url), ask(url)] == [ANSWER] * 2
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
        assert process.returncode == 0


@contextlib.contextmanager
def busy(url):
    """Calls one after another while this lasts, one of them in progress all the time; what they were answered."""
    answers, over = [], threading.Event()

    def call():
        while not over.is_set():
            answers.append(ask(url))

    caller = threading.Thread(target=call)
    caller.start()
    try:
        yield answers
    finally:
        over.set()
        caller.join(20)
    answers.append(ask(url))


@pytest.mark.parametrize("before", [signal.SIG_DFL, signal.SIG_IGN], ids=["in a terminal", "nohup"])
def test_sighup_reads_the_file_again(before, tmp_path, provider):
    file = tmp_path / "gate.toml"

    def write(limit):
        file.write_text(CONFIG.format(port=provider.port, limit=limit))

    def hang_up(process):
        process.send_signal(signal.SIGHUP)
        return next(line for line in iter(process.stderr.readline, "") if "configuration" in line)

    write("600 per 60s")
    started = running(tmp_path, provider, "--config", str(file), "--no-control")
    with found(before, signal.SIGHUP), started as (process, url):
        assert ask(url) == ANSWER
        write("many per 60s")
        with busy(url) as answers:  # OP-02: nobody is dropped
            assert "stays as it was" in hang_up(process)
        assert len(answers) > 1
        assert all(one == ANSWER for one in answers)
        write("1_200 per 60s")
        assert "1 limit changed" in hang_up(process)
        assert ask(url) == ANSWER
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
        assert process.returncode == 0
    assert KEY not in "".join(path.read_text("utf-8", "replace") for path in tmp_path.rglob("*") if path.is_file())


KEPT = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "ANTHROPIC_"))}


def run(*arguments, **environment):
    return subprocess.run(
        [COMMAND, *arguments], env=KEPT | environment, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.fixture
def refused(monkeypatch):
    """The command in this process, where it ends before it serves: its exit code and what it said."""
    monkeypatch.setattr("swarmgate.cli.up.leave_no_dump", lambda: None)

    def run(*arguments, **environment):
        nothing = dict.fromkeys(set(os.environ) - set(KEPT))
        done = CliRunner().invoke(app, list(arguments), env=nothing | environment)
        return done.exit_code, done.output

    return run


def test_without_a_key_it_says_which_one(refused):
    code, said = refused("up")
    assert (code, "OPENAI_API_KEY" in said) == (2, True)


def test_a_file_that_nobody_named_is_pointed_at(tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "swarmgate.toml").touch()
    assert "swarmgate.toml is here and not read: --config swarmgate.toml serves it" in refused("up")[1]


@pytest.mark.parametrize(("words", "told"), [('provider = "anthropic"', True), ('auth = "bearer"', False)])
def test_an_sdk_is_pointed_at_the_gate_where_a_target_speaks_like_it(words, told):
    text = f'[targets.a]\nbase_url = "http://127.0.0.1:9/v1"\nkeys = {{ k = "env:K" }}\n{words}\n'
    lines = list(exports(parse(text, {"K": KEY}), "127.0.0.1:8787"))
    assert ("export ANTHROPIC_BASE_URL=http://127.0.0.1:8787" in lines) is told


def test_agents_beyond_this_machine_are_told_a_name_and_to_bring_a_key():
    text = 'listen = "0.0.0.0:8787"\n[access]\nagent_keys = "required"\n'
    first, second = exports(parse(text, {}), "0.0.0.0:8787")
    assert first == f"export OPENAI_BASE_URL=http://{socket.gethostname()}:8787/v1"
    assert second.startswith("export OPENAI_API_KEY=sgk_...   # ")


def test_it_listens_on_ipv6_and_says_so_as_urls_do(tmp_path):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here")
    file = tmp_path / "gate.toml"
    file.write_text('listen = "[::1]:0"\n')
    command = [COMMAND, "up", "--config", str(file), "--state", str(tmp_path / "s"), "--no-control"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        line = process.stdout.readline()
        assert line.startswith("export OPENAI_BASE_URL=http://[::1]:")
        with urlopen(f"{line.partition('=')[2].strip()}/models", timeout=20) as answer:
            assert json.load(answer)["data"] == []
        process.terminate()


def test_it_does_not_call_itself(refused):
    code, said = refused("up", OPENAI_API_KEY=KEY, OPENAI_BASE_URL="http://127.0.0.1:8787/v1")
    assert (code, "this gate itself" in said) == (2, True)


def test_a_port_that_is_taken(tmp_path, provider):
    done = run("up", "--port", str(provider.port), "--no-control", OPENAI_API_KEY=KEY, XDG_STATE_HOME=str(tmp_path))
    assert done.returncode == 3
    told = f"127.0.0.1:{provider.port} cannot be listened on: Address already in use; --port names another"
    assert told in done.stderr


def test_a_state_folder_that_is_a_file(tmp_path, refused):
    (tmp_path / "state").write_text("")
    for folder in (tmp_path / "state", tmp_path / "state" / "below"):
        code, said = refused("up", "--port", "0", "--state", str(folder), OPENAI_API_KEY=KEY)
        assert (code, "name a folder" in said) == (2, True)


def test_a_file_that_is_wrong_or_not_there(tmp_path, refused):
    file = tmp_path / "gate.toml"
    file.write_text("lisen = 1\n")
    code, said = refused("up", "--config", str(file))
    assert (code, f"{file}:1: lisen: is unknown; nearest is 'listen'" in said) == (2, True)
    assert refused("up", "--config", str(tmp_path / "none.toml"))[0] == 2


def test_connections_that_do_not_fit(tmp_path):
    file = tmp_path / "gate.toml"
    file.write_text("connections = 2_000\n" + CONFIG.format(port=9, limit="5 per 60s"))
    script = 'ulimit -n 3000 && exec "$0" up --config "$1"'  # soft and hard
    done = subprocess.run(
        ["sh", "-c", script, COMMAND, str(file)],
        env=os.environ | {"OPENAI_API_KEY": KEY},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert "connections: 2000 do not fit: 3000 files may be open" in done.stderr


def test_help_ends_with_an_example(refused):
    assert "Example: OPENAI_API_KEY=... swarmgate up" in refused("up", "--help")[1]
    assert refused("up", "--port", "many")[0] == 2


DISK_CALLS = ("make", "names", "exists", "facts", "read", "write", "rename", "remove", "sync", "lock", "reserve")


@pytest.mark.parametrize("error", [errno.EROFS, errno.EIO])
def test_op_07_a_start_on_a_disk_that_does_not_take_it_ends_with_one_sentence(tmp_path, monkeypatch, refused, error):
    """The disk fails from its first call on, from its second, ...: read only, another's, broken."""
    left = [0]

    def failing(done):
        def call(self, *arguments):
            left[0] -= 1
            if left[0] < 0:
                raise OSError(error, os.strerror(error))
            return done(self, *arguments)

        return call

    async def run(_self):
        return 0

    monkeypatch.setattr(data._Data, "run", run)  # it goes as soon as it has begun
    for name in DISK_CALLS:
        monkeypatch.setattr(SystemDisk, name, failing(getattr(SystemDisk, name)))
    codes = []
    for left_over in range(200):
        left[0] = left_over
        folder = tmp_path / str(left_over)
        code, said = refused("up", "--port", "0", "--no-control", "--state", str(folder), OPENAI_API_KEY=KEY)
        assert "Traceback" not in said, said
        assert code == 0 or os.strerror(error) in said.splitlines()[-1], said
        codes.append(code)
        if left[0] >= 0:
            break
    assert codes[0] == 2
    assert set(codes) == {0, 2}
    assert codes == sorted(codes, reverse=True)  # once it runs, what it cannot keep at its end is told


@pytest.mark.parametrize("left", ["limits.json", "ledger.sqlite3", "running"])
def test_lg_14_a_folder_without_its_journal_is_no_first_run(tmp_path, monkeypatch, refused, left):
    """Somebody restored the databases alone, or cleared what looked like logs: nothing tells what was used today."""

    async def run(_self):
        return 0

    monkeypatch.setattr(data._Data, "run", run)
    started = ("up", "--port", "0", "--no-control", "--state", str(tmp_path))
    code, said = refused(*started, OPENAI_API_KEY=KEY)
    assert (code, "first run here: budgets start full" in said) == (0, True)
    for path in tmp_path.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    (tmp_path / left).write_text('{"policy":1,"budgets":{}}' if left == "limits.json" else "")
    code, said = refused(*started, OPENAI_API_KEY=KEY)
    assert (code, "budgets start cold" in said, "counters start used up" in said) == (0, True, True), said
    saved = json.loads((tmp_path / "budgets.json").read_text())["cells"]
    assert saved["github/anonymous: requests per 3600s"]["level"] == 48


def test_op_07_a_clock_that_was_never_set_is_told(tmp_path, monkeypatch, refused):
    monkeypatch.setattr(data, "unix_ms", lambda: 90_000)
    code, said = refused("up", "--port", "0", "--no-control", "--state", str(tmp_path / "s"), OPENAI_API_KEY=KEY)
    assert (code, said) == (2, "the clock says 90 s since 1970, so it was never set; set it, then start the gate\n")
    assert not (tmp_path / "s").exists()
