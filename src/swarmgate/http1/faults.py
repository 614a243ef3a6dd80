"""
Why an attempt at a target got no whole answer: a closed list.

Here lives the enum that every owner of an upstream connection is told; each fault says whether a byte of the request may
have left, which decides about repeating a write (design P7).
"""

from enum import Enum


class Fault(Enum):
    """What happened: (code, sentence, whether request bytes may have left)."""

    RESOLVE_FAILED = ("resolve_failed", "the target's name has no address that may be dialled", False)
    NO_SUCH_NAME = ("no_such_name", "there is no such name, or it has no address", False)
    ADDRESS_DENIED = ("address_denied", "the target's name leads to an address that may not be dialled", False)
    NAMES_USED_UP = ("names_used_up", "too many new names of the target's domain were looked up lately", False)
    CONNECT_REFUSED = ("connect_refused", "the target refused the connection or cannot be reached", False)
    CONNECT_TIMEOUT = ("connect_timeout", "no connection within the connect limit", False)
    UNTRUSTED = ("untrusted", "the target's certificate is not valid for its name, or by nobody known here", False)
    TLS_FAILED = ("tls_failed", "the target's handshake was not accepted", False)
    POOL_FULL = ("pool_full", "too many calls already wait for a connection to this target", False)
    CLOSED_EARLY = ("closed_early", "the target closed the connection before a whole response head", True)
    TIMEOUT = ("timeout", "the target sent nothing within its limit", True)
    BAD_HEAD = ("bad_head", "the target's response head does not read as HTTP/1.1", True)
    TOO_MANY_INTERIM = ("too_many_interim", "the target sent too many 1xx responses", True)
    UNASKED_UPGRADE = ("unasked_upgrade", "the target switched protocols unasked", True)
    BAD_BODY = ("bad_body", "the target's body breaks its framing", True)
    TRUNCATED = ("truncated", "the target closed the connection inside the body", True)

    def __init__(self, code: str, sentence: str, may_have_left: bool) -> None:
        self.code = code
        self.sentence = sentence
        self.may_have_left = may_have_left
