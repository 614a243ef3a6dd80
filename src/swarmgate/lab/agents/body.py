"""
The bytes of an agent's calls: full length, four characters a token, and the wish for an answer of the recorded length.

The stand-ins answer with as many tokens as the prompt's last sentence asks for; a real model may do as it likes.
"""

from swarmgate.http1.head import Header
from swarmgate.http1.render import request_head
from swarmgate.lab.workload import Wanted

CHARS_PER_TOKEN = 4
CHAT = b"/v1/chat/completions"
_FILLER = b"the literature reports rates of each catalyst under the conditions that were tried "
_MOST_CHARS = 1 << 20
_TEXT = _FILLER * (_MOST_CHARS // len(_FILLER) + 1)
_JSON: Header = (b"content-type", b"application/json")


def chat_body(wanted: Wanted, model: str, *, is_stream: bool, chained: bool = False) -> bytes:
    """A chat completion's body, for an answer that is a chain or any; prompts beyond a million characters are cut there."""
    wish = b" Answer in %d tokens%b." % (wanted.output_tokens, b" of a chain" if chained else b"")
    chars = min(max(0, wanted.prompt_tokens * CHARS_PER_TOKEN - len(wish)), _MOST_CHARS)
    stream = b'"stream":true,"stream_options":{"include_usage":true},' if is_stream else b""
    return b'{"model":"%b",%b"max_tokens":%d,"user":"%b","messages":[{"role":"user","content":"%b%b"}]}' % (
        model.encode(),
        stream,
        wanted.output_cap_tokens,
        wanted.call_id.encode(),
        _TEXT[:chars],
        wish,
    )


def post(path: bytes, host: bytes, headers: list[Header], body: bytes) -> bytes:
    """A whole POST."""
    return request_head(b"POST", path, host, [_JSON, *headers], length=len(body)) + body


def get(path: bytes, host: bytes, headers: list[Header]) -> bytes:
    """A whole GET."""
    return request_head(b"GET", path, host, headers)
