"""The gate is not its own upstream, whatever its address is called; and no password of an upstream gets into a file."""

import json
import socket
import tomllib

import pytest
from typer.testing import CliRunner

from swarmgate.cli import app, up
from swarmgate.cli.itself import ends_at
from swarmgate.config import Listen
from swarmgate.config.addresses import read_base_url
from swarmgate.config.problems import FileError
from swarmgate.control import link

KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
URLS = ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL")
TARGET = '[targets.openai]\nbase_url = "{url}"\nkeys = {{ k = "env:OPENAI_API_KEY" }}\n'


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A command in an environment of its own, as it ends and what it says."""
    monkeypatch.setattr("swarmgate.cli.up.leave_no_dump", lambda: None)

    def run(*arguments, **environment):
        env = dict.fromkeys(KEYS + URLS) | {"XDG_STATE_HOME": str(tmp_path / "state")} | environment
        done = CliRunner().invoke(app, [str(one) for one in arguments], env=env)
        return done.exit_code, done.output

    return run


@pytest.mark.parametrize(
    ("url", "listen", "does"),
    [
        ("http://127.0.0.1:9/v1", "127.0.0.1", True),
        ("http://127.1:9/v1", "127.0.0.1", True),
        ("http://localhost:9", "127.0.0.1", True),
        ("https://LOCALHOST:9", "::1", True),
        ("http://127.0.0.1:9", "localhost", True),
        ("http://0.0.0.0:9", "127.0.0.1", True),
        ("http://[::1]:9", "::", True),
        ("http://127.0.0.7:9", "0.0.0.0", True),
        ("http://this-machine:9", "0.0.0.0", True),
        ("http://[fe80::1]:9", "fe80::1%eth0", False),
        ("http://127.0.0.1:8", "127.0.0.1", False),
        ("http://127.0.0.2:9", "127.0.0.1", False),
        ("http://10.1.2.3:9", "127.0.0.1", False),
        ("http://this-machine:9", "127.0.0.1", False),
        ("http://10.1.2.3:9", "0.0.0.0", False),
    ],
)
def test_a_url_ends_at_the_gate_by_any_name_of_its_address(monkeypatch, url, listen, does):
    monkeypatch.setattr("swarmgate.cli.itself.gethostname", lambda: "This-Machine")
    assert ends_at(read_base_url(url), Listen(listen, 9)) is does


@pytest.mark.parametrize("words", [(), ("--port", "9000")])
def test_up_does_not_call_itself_by_another_name(run, words):
    port = words[-1] if words else 8787
    code, said = run("up", *words, OPENAI_API_KEY="sk-1", OPENAI_BASE_URL=f"http://localhost:{port}/v1")
    assert (code, "this gate itself" in said) == (2, True)


def test_a_file_that_names_the_gate_itself_is_not_served_at_a_reload(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    file = tmp_path / "gate.toml"
    file.write_text(TARGET.format(url="http://localhost:9000/v1"))
    assert up._again(file, 7, Listen("127.0.0.1", 9001)).connections == 7
    with pytest.raises(FileError, match="openai: base_url is this gate itself"):
        up._again(file, 7, Listen("127.0.0.1", 9000))


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://127.0.0.1:9000/v1", False),
        ("http://localhost:9000/v1", False),
        ("http://10.1.2.3:9000/v1", True),
        ("http://127.0.0.1:8787/v1", True),
    ],
)
def test_check_takes_for_the_gate_what_is_at_its_host_and_port(run, tmp_path, url, told):
    file = tmp_path / "gate.toml"
    file.write_text('listen = "127.0.0.1:9000"\n' + TARGET.format(url="https://api.openai.com/v1"))
    said = run("check", file, OPENAI_API_KEY="sk-1", OPENAI_BASE_URL=url)[1]
    assert ("is not where openai sends its calls" in said) is told


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("https://me:hidden@h/v1", "bearer, x-api-key or api-key"),
        ("https://hidden@h/v1", "a user or a password"),
        ("https://me:hid/den@h/v1", "port"),
        ("https://h/v1?key=hidden", "a query"),
        ("nonsense", "must be http or https"),
    ],
)
def test_init_writes_no_password_and_no_url_that_is_none(run, tmp_path, url, why):
    file = tmp_path / "gate.toml"
    code, said = run("init", file, OPENAI_API_KEY="sk-1", OPENAI_BASE_URL=url)
    assert (code, file.exists()) == (2, False)
    assert said.startswith("OPENAI_BASE_URL of this environment ")
    assert why in said
    assert "hid" not in said
    assert "hid" not in run("up", OPENAI_API_KEY="sk-1", OPENAI_BASE_URL=url)[1]
    assert run("init", file, ANTHROPIC_API_KEY="sk-1", OPENAI_BASE_URL=url)[0] == 0  # nobody asked for it


def test_init_does_not_write_a_gate_that_runs_here(run, tmp_path, monkeypatch):
    file = tmp_path / "gate.toml"
    environment = {"OPENAI_API_KEY": "sk-1", "OPENAI_BASE_URL": "http://localhost:9000/v1"}
    folder = tmp_path / "state" / "swarmgate" / "127.0.0.1-9000"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(link.SOCKET)
        door.listen()
        code, said = run("init", file, **environment)
    assert (code, "OPENAI_BASE_URL names a gate here, which is for agents" in said) == (0, True)
    assert tomllib.loads(file.read_text())["targets"]["openai"]["base_url"] == "https://api.openai.com/v1"
    file.unlink()
    assert "go to http://localhost:9000/v1" in run("init", file, **environment)[1]  # nothing of ours runs there


@pytest.mark.parametrize(
    ("url", "provider", "moved"),
    [
        ("https://api.groq.com/openai/v1", None, True),
        ("http://10.1.2.3:4000/v1", "openai", True),
        ("HTTPS://api.OPENAI.com/v1/", None, False),
    ],
)
def test_init_leaves_the_provider_to_the_host_where_that_is_known(run, tmp_path, url, provider, moved):
    file = tmp_path / "gate.toml"
    done = run("init", file, "--json", OPENAI_API_KEY="sk-1", OPENAI_BASE_URL=url)
    target = tomllib.loads(file.read_text())["targets"]["openai"]
    assert target.get("provider") == provider
    assert json.loads(done[1])["upstreams"] == ({"openai": url.rstrip("/")} if moved else {})
