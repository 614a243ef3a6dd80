"""The link: either end asks, orders answer or refuse, and nobody waits for an end that is gone."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventually import eventually
from swarmgate.control import link
from swarmgate.core.errors import BadInput


def refuse(_said):
    raise BadInput("amount", "is too much")


def fail(_said):
    raise RuntimeError("a bug")


async def later(said):
    await asyncio.sleep(0)
    return {"later": said["number"]}


ORDERS = {"echo": lambda said: said, "refuse": refuse, "fail": fail, "later": later}


async def linked(folder, play, far=ORDERS, near=None):
    """A link over a socket in `folder`; `play` gets the near end and all far ends."""
    ends = []

    def make():
        ends.append(link.Peer(far))
        return ends[-1]

    server = await link.listen(folder, make)
    peer = await link.connect(folder, lambda: link.Peer(near or {}))
    try:
        await play(peer, ends)
    finally:
        peer.close()
        for end in ends:
            end.close()
        server.close()
        await asyncio.sleep(0)


def test_either_end_asks(tmp_path):
    async def play(peer, ends):
        assert await peer.ask("echo", words="ä\n", number=3) == {"words": "ä\n", "number": 3}
        assert await peer.ask("later", number=4) == {"later": 4}
        await eventually(lambda: ends)
        assert await ends[0].ask("near") == 7
        many = await asyncio.gather(*(peer.ask("later", number=number) for number in range(50)))
        assert [answer["later"] for answer in many] == list(range(50))

    asyncio.run(linked(tmp_path, play, near={"near": lambda _: 7}))


def test_refusals_keep_their_field_and_bugs_end_nothing(tmp_path):
    async def play(peer, _ends):
        told = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: told.append(context["exception"]))
        with pytest.raises(BadInput) as caught:
            await peer.ask("refuse")
        assert (caught.value.field, caught.value.reason) == ("amount", "is too much")
        with pytest.raises(BadInput, match="RuntimeError"):
            await peer.ask("fail")
        assert [str(error) for error in told] == ["a bug"]
        with pytest.raises(BadInput, match="echo, fail, later, refuse"):
            await peer.ask("nothing like it")
        assert await peer.ask("echo") == {}

    asyncio.run(linked(tmp_path, play))


def test_nobody_waits_for_an_end_that_is_gone_or_silent(tmp_path):
    never = asyncio.Event

    async def silent(_said):
        await never().wait()

    async def play(peer, ends):
        with pytest.raises(link.LinkLost, match="no answer"):
            await peer.ask("silent", within_s=0.01)
        asking = asyncio.get_running_loop().create_task(peer.ask("silent"))
        await eventually(lambda: ends and peer._asked)
        ends[0].close()
        with pytest.raises(link.LinkLost, match="gone"):
            await asking
        with pytest.raises(link.LinkLost, match="no link"):
            await peer.ask("echo")

    asyncio.run(linked(tmp_path, play, far={"silent": silent}))


@given(st.lists(st.integers(1, 30), max_size=9))
def test_lines_may_come_in_any_pieces(cuts):
    class Wire:
        def __init__(self):
            self.written = b""

        def write(self, data):
            self.written += data

    wire, peer = Wire(), link.Peer(ORDERS)
    peer.connection_made(wire)
    data = b'{"id":1,"do":"echo","with":{"a":1}}\n{"id":2,"do":"echo"}\n{"id":9,"said":1}\n'
    for cut in [*cuts, len(data)]:
        peer.data_received(data[:cut]) if data[:cut] else None
        data = data[cut:]
    assert wire.written == b'{"id":1,"said":{"a":1}}\n{"id":2,"said":{}}\n'


@pytest.mark.parametrize("data", [b"no json\n", b'{"do":"echo"}\n', b"[1]\n", b"x" * (link.MOST_BYTES + 1)])
def test_whoever_speaks_otherwise_is_cut_off(data):
    class Wire:
        closed = False

        def close(self):
            self.closed = True

    wire, peer = Wire(), link.Peer(ORDERS)
    peer.connection_made(wire)
    peer.data_received(data)
    assert wire.closed


def test_the_socket_is_its_owners_and_may_lie_deep(tmp_path):
    deep = tmp_path / ("d" * 90) / ("e" * 90)
    deep.mkdir(parents=True)

    async def play(peer, _ends):
        assert (deep / link.SOCKET).stat().st_mode & 0o777 == 0o600
        assert await peer.ask("echo", deep=1) == {"deep": 1}

    asyncio.run(linked(deep, play))
    asyncio.run(linked(deep, play))  # the socket of a gate that died is in nobody's way


def test_without_a_gate_there_is_no_link(tmp_path):
    with pytest.raises(FileNotFoundError):
        asyncio.run(link.connect(tmp_path, lambda: link.Peer({})))
