"""TLS both ways: agents speak it to the data port, the gate verifies its targets, and certificates are renewed in place."""

import asyncio
import shutil
import ssl
from types import SimpleNamespace

import httpx
import openai
import pytest
from sdks import ASK, gpt
from stage import KEY, STREAM_HEAD, TARGET, StandIn, either, framed, stage, token, warm
from test_front import request

from certificates import made_in
from eventually import eventually
from swarmgate import config, wiring
from swarmgate.config.problems import FileError
from swarmgate.control.reload import Reload

OURS = """
[tls]
certificate = "{folder}/gate.pem"
key = "{folder}/gate.key"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return made_in(tmp_path_factory.mktemp("tls"), ("gate", "target", "agent"), expired=("old",), own=("own",))


def trusting(folder, certificate=None):
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    if certificate:
        context.load_cert_chain(folder / f"{certificate}.pem", folder / f"{certificate}.key")
    return context


def served(folder, more=""):
    return TARGET + (OURS + more).format(folder=folder)


def sdk(on, context, name="localhost"):
    client = openai.DefaultAsyncHttpxClient(verify=context)
    return openai.AsyncOpenAI(
        base_url=f"https://{name}:{on.port}/v1", api_key="agent", max_retries=0, http_client=client
    )


def test_the_sdk_speaks_tls_to_the_gate_plain_and_streamed(folder):
    async def play():
        async with stage(either, served(folder)) as on, sdk(on, trusting(folder)) as client:
            assert (await client.chat.completions.create(**ASK)).choices[0].message.content == "four"
            stream = await client.chat.completions.create(**ASK, stream=True)
            said = [c.choices[0].delta.content or "" async for c in stream if c.choices]
            assert "".join(said) == "four"
            assert on.ends == ["answered"] * 2
            assert len(on.gate.doors) == 1  # both over one connection

    asyncio.run(play())


def test_hi_19_whoever_offers_http_2_is_spoken_to_in_http_1(folder):
    async def play():
        async with stage(either, served(folder)) as on:
            context = trusting(folder)
            context.set_alpn_protocols(["h2", "http/1.1"])
            _, writer = await asyncio.open_connection("127.0.0.1", on.port, ssl=context, server_hostname="localhost")
            assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"
            writer.close()

    asyncio.run(play())


def test_who_leaves_in_the_middle_of_a_stream_has_left_over_tls_too(folder):
    async def begins(stand_in, _hit, writer):
        writer.write(STREAM_HEAD + framed(token("a")))
        await stand_in.closed.wait()

    async def play():
        async with stage(begins, served(folder)) as on:
            context = trusting(folder)
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", on.port, ssl=context, server_hostname="localhost"
            )
            writer.write(request(body=b'{"model":"m","stream":true}'))
            await reader.readuntil(b"\n\n")
            writer.close()
            await eventually(lambda: on.ends == ["cancelled"] and on.stand_in.closed.is_set())

    asyncio.run(play())


def test_an_upload_that_is_refused_hears_why(folder):
    async def play():
        async with stage(either, served(folder)) as on:
            context = trusting(folder)
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", on.port, ssl=context, server_hostname="localhost"
            )
            writer.write(b"POST /v1/responses HTTP/1.1\r\nhost: g\r\ncontent-length: 40000000\r\n\r\n")
            for _ in range(64):
                writer.write(bytes(65_536))
            assert b" 413 " in await reader.readuntil(b"\r\n\r\n")
            await writer.drain()  # all of it is taken from us: nothing was reset
            writer.close()
            await eventually(lambda: not on.gate.doors)

    asyncio.run(play())


def test_who_does_not_trust_the_gate_says_nothing_and_who_speaks_no_tls_is_told_so(folder):
    async def play():
        async with stage(either, served(folder)) as on:
            async with sdk(on, ssl.create_default_context()) as stranger:
                with pytest.raises(openai.APIConnectionError):
                    await stranger.chat.completions.create(**ASK)
            async with httpx.AsyncClient() as plain:
                told = await plain.get(f"http://127.0.0.1:{on.port}/v1/models")
                assert (told.status_code, told.json()["error"]["code"]) == (400, "caller_not_tls")
            async with openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{on.port}/v1", api_key="agent") as plain:
                with pytest.raises(openai.BadRequestError, match="https://"):
                    await plain.chat.completions.create(**ASK)
            assert on.gate.doors == set()

    asyncio.run(play())


def test_callers_show_a_certificate_where_an_authority_for_them_is_named(folder):
    async def play():
        async with stage(either, served(folder, 'client_ca = "{folder}/ca.pem"\n')) as on:
            async with sdk(on, trusting(folder, "agent")) as known:
                await known.chat.completions.create(**ASK)
            async with sdk(on, trusting(folder)) as unknown:
                with pytest.raises(openai.APIConnectionError):
                    await unknown.chat.completions.create(**ASK)
            assert len(on.stand_in.hits) == 1

    asyncio.run(play())


def test_a_certificate_is_renewed_without_a_restart(folder, tmp_path):
    for name in ("gate.pem", "gate.key"):
        shutil.copy(folder / name, tmp_path / name)

    async def play():
        async with stage(either, served(tmp_path)) as on:
            first = await shown(on.port, folder)
            for end in ("pem", "key"):
                shutil.copy(folder / f"agent.{end}", tmp_path / f"gate.{end}")
            read = config.parse(served(tmp_path).format(port=9), {"KEY": KEY})
            Reload(read, on.gate, SimpleNamespace(reloaded=lambda *_: None), lambda _said: None).do(lambda: read)
            assert await shown(on.port, folder) != first

    asyncio.run(play())


async def shown(port, folder):
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting(folder), server_hostname="localhost")
    certificate = writer.get_extra_info("peercert")
    writer.close()
    return certificate["serialNumber"]


@pytest.mark.parametrize("trusted", [True, False])
def test_a_target_is_verified_against_the_operator_s_authority(folder, trusted):
    async def play():
        stand_in = StandIn(either)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "target.pem", folder / "target.key")
        server = await asyncio.start_server(stand_in.serve, "127.0.0.1", 0, ssl=context)
        text = TARGET.replace("http:", "https:").format(port=server.sockets[0].getsockname()[1])
        text += f'[tls]\ntarget_ca = "{folder}/ca.pem"\n' if trusted else ""
        gate = wiring.gate(asyncio.get_running_loop(), config.parse(text, {"KEY": KEY}), lambda *_: None)
        warm(gate)
        port = await gate.start("127.0.0.1", 0)
        async with openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="x", max_retries=0) as client:
            if trusted:
                await client.chat.completions.create(**ASK)
            else:
                with pytest.raises(openai.APIStatusError, match="certificate is not valid") as caught:
                    await client.chat.completions.create(**ASK)
                assert caught.value.code == "target_tls"
        assert len(stand_in.hits) == trusted  # a key goes to nobody who is not who it says
        await gate.stop(drain_s=1)
        server.close()
        await stand_in.close()

    asyncio.run(play())


LADDER = """
[targets.bad]
base_url = "https://{name}:{bad}/v1"
keys = {{{{ only = "env:KEY" }}}}
[routes]
fast = [{rungs}]
[resolve]
"other.example" = "127.0.0.1:{bad}"
[tls]
target_ca = "{folder}/ca.pem"
"""
BAD = {"another name": ("target", "other.example"), "expired": ("old", "localhost"), "its own": ("own", "localhost")}


@pytest.mark.parametrize("how", BAD)
def test_up_13_a_bad_certificate_is_told_once_and_another_target_serves(folder, how):
    """No other attempt would see another one; the key goes to nobody who shows it."""
    certificate, name = BAD[how]
    heard, hellos = [], []

    async def hears(reader, _writer):
        heard.append(await reader.read(1))

    async def play():
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / f"{certificate}.pem", folder / f"{certificate}.key")
        context.sni_callback = lambda *_: hellos.append(how)
        server = await asyncio.start_server(hears, "127.0.0.1", 0, ssl=context)
        bad = server.sockets[0].getsockname()[1]
        for rungs in ('"bad/m"', '"bad/m", "up/m"'):
            text = TARGET + LADDER.format(name=name, bad=bad, rungs=rungs, folder=folder)
            async with stage(either, text) as on, gpt(on.port) as client:
                if "up" in rungs:
                    await client.chat.completions.create(**ASK | {"model": "fast"})
                else:
                    with pytest.raises(openai.APIStatusError, match="certificate is not valid") as caught:
                        await client.chat.completions.create(**ASK | {"model": "fast"})
                    assert (caught.value.code, caught.value.status_code) == ("target_tls", 502)
                    assert on.ends == ["failed"]
        assert len(hellos) == 2
        assert not any(heard)
        server.close()

    asyncio.run(play())


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('certificate = "{f}/gate.pem"', 1, "tls.key: stands without the other"),
        ('certificate = "{f}/gate.pem"\nkey = "{f}/agent.key"', 3, "tls.key: does not belong to certificate"),
        ('certificate = "{f}/none"\nkey = "{f}/gate.key"', 2, "tls.certificate: the file"),
        ('client_ca = "{f}/ca.pem"', 2, "tls.client_ca: needs certificate and key"),
        ('target_ca = "{f}/ext"', 2, "tls.target_ca: the file"),
    ],
)
def test_files_that_cannot_be_used_are_told_with_their_line(folder, text, line, words):
    with pytest.raises(FileError) as caught:
        config.parse("[tls]\n" + text.format(f=folder), {})
    assert f":{line}: {words}" in str(caught.value)
