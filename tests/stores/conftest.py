"""The servers of these tests (valkey_server.py)."""

import pytest
from valkey_server import free_port, running

from eventually import at_last


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One server for a module: its tests use deployments of their own, or flush."""
    with running(tmp_path_factory.mktemp("v")) as one:
        yield one


@pytest.fixture
def own_server(tmp_path):
    """A server that the test may freeze, flush and kill."""
    with running(tmp_path / "v") as one:
        yield one


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A cluster of one node that has every slot."""
    folder = tmp_path_factory.mktemp("c")
    with running(folder, "--cluster-enabled", "yes", "--cluster-port", str(free_port()), tcp=True) as one:
        one.client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        at_last(lambda: b"cluster_state:ok" in one.client.execute_command("CLUSTER", "INFO"))
        yield one


@pytest.fixture
def patient(monkeypatch):
    """A store that waits longer for its answers: here they come, however busy the machine."""
    monkeypatch.setattr("swarmgate.stores.valkey.store.ANSWER_S", 5.0)
