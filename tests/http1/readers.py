"""Other readers of HTTP/1.1 that are libraries: what each of them reads of one connection's bytes, as (method, target, body)."""

import asyncio
from contextlib import suppress

import h11
from aiohttp import http_parser
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http_exceptions import HttpProcessingError

Requests = list[tuple[bytes, bytes, bytes]]


def by_h11(raw: bytes) -> Requests:
    peer, requests = h11.Connection(h11.SERVER), []
    peer.receive_data(raw)
    try:
        while isinstance(request := peer.next_event(), h11.Request):
            body = b""
            while isinstance(event := peer.next_event(), h11.Data):
                body += event.data
            if not isinstance(event, h11.EndOfMessage):
                break
            requests.append((request.method, request.target, body))
            peer.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
            peer.send(h11.EndOfMessage())
            peer.start_next_cycle()
    except h11.ProtocolError:
        pass
    return requests


def _by_aiohttp(kind, raw: bytes) -> Requests:
    """Byte by byte: an error takes along whatever was read in the same piece."""
    loop = asyncio.new_event_loop()
    try:
        parser = kind(
            BaseProtocol(loop), loop, 65_536, max_line_size=8_190, max_field_size=8_190, auto_decompress=False
        )
        read = []
        with suppress(HttpProcessingError):
            for at in range(len(raw)):
                read += parser.feed_data(raw[at : at + 1])[0]
        whole = [(said, body) for said, body in read if body.is_eof() and body.exception() is None]
        return [
            (said.method.encode(), said.path.encode(errors="surrogateescape"), body.read_nowait())
            for said, body in whole
        ]
    finally:
        loop.close()


def by_aiohttp_in_c(raw: bytes) -> Requests:
    return _by_aiohttp(http_parser.HttpRequestParserC, raw)


def by_aiohttp_in_python(raw: bytes) -> Requests:
    return _by_aiohttp(http_parser.HttpRequestParserPy, raw)


READERS = {"h11": by_h11, "aiohttp in C": by_aiohttp_in_c, "aiohttp in Python": by_aiohttp_in_python}
