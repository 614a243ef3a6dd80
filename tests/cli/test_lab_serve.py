"""What `swarmgate lab serve` says of files and ports that cannot be had; that it serves is told in tests/lab/standin."""

import socket

import pytest
from typer.testing import CliRunner

from swarmgate.cli import app
from swarmgate.cli.exits import Exit
from swarmgate.cli.lab import _welcome
from swarmgate.lab.standin.plan import DEFAULT_PLAN

PROVIDER = (
    '{"name": "p", "dialect": "openai", "port": %d, "limits": [[{"kind": "sliding_log", "limit": 1, "window_ms": 9}]]}'
)


def serve(*arguments):
    return CliRunner().invoke(app, ["lab", "serve", *arguments])


def test_a_port_that_is_taken_is_named_with_a_way_out(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        plan = tmp_path / "plan.json"
        plan.write_text(f'{{"providers": [{PROVIDER % port}]}}')
        found = serve("--plan", str(plan))
    assert found.exit_code == Exit.UNREACHABLE
    assert f"port {port}: of p cannot be had: Address already in use; name another, or 0 for a free one" in found.output


@pytest.mark.parametrize("option", ["--plan", "--witness"])
def test_a_file_that_is_not_there_is_named(tmp_path, option):
    path = tmp_path / "none" / "file"
    found = serve(option, str(path))
    assert found.exit_code == Exit.USAGE
    assert found.output == f"{path}: No such file or directory\n"


def test_the_welcome_says_what_to_do_next(capsys):
    ports = {"openai-like": 40_001, "anthropic-like": 9_102, "web-1": 9_103, "admin": 9_100}
    _welcome(DEFAULT_PLAN, ports)
    told = capsys.readouterr().out
    assert "port 9101 is taken" in told
    assert "port 9102 is taken" not in told
    assert "OPENAI_BASE_URL=http://127.0.0.1:40001/v1 \\\nOPENAI_API_KEY=sk-lab-openai-like-1 swarmgate up" in told
    assert "cat > gate.toml <<'END'\n[targets.openai-like]\nbase_url = \"http://127.0.0.1:40001/v1\"" in told
    assert "\nEND\nfor n in $(seq 4); do export OPENAI_LIKE_$n" in told
    assert '"place":"openai-like"' in told
