"""
The name under which a write is done at most once: agent id + task id + operation sequence, all three (essay A).

Two of the three are not enough: without the sequence an agent's second write looks like a repeat, without the task
every run does. Parts are joined with their lengths, so that ("a", "bc") and ("ab", "c") differ. Tenants never share a
name. What leaves is a hash: a third party learns nothing about agents and tasks from it.
"""

from hashlib import blake2b
from typing import Final, NamedTuple

from swarmgate.core.errors import BadInput

HEADER: Final = "idempotency-key"
LONGEST_PART: Final = 255  # Stripe's bound for the header, and more than any id needs
LONGEST_SEQUENCE: Final = 15  # digits: stays below 2^53


class IdempotencyKey(NamedTuple):
    """`stored` names the write in our records (unambiguous over tenants and sources), `sent` goes upstream."""

    stored: str
    sent: str


def from_operation(tenant: str, agent: str, task: str, sequence: str) -> IdempotencyKey:
    """
    The key of an agent's operation; `sequence` is a decimal number, `007` and `7` are the same operation.

    Errors: `BadInput` on the header of the part that is missing or unusable.
    """
    for field, part in (("x-swarmgate-agent", agent), ("x-swarmgate-task", task), ("x-swarmgate-op", sequence)):
        _check(field, part)
    if not (sequence.isdecimal() and sequence.isascii() and len(sequence) <= LONGEST_SEQUENCE):
        raise BadInput("x-swarmgate-op", f"{sequence[:20]!r} is no operation sequence number: give 1 to 15 digits")
    stored = _joined("operation", tenant, agent, task, str(int(sequence)))
    return IdempotencyKey(stored, blake2b(stored.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest())


def from_header(tenant: str, value: str) -> IdempotencyKey:
    """
    The key that a caller chose itself; it goes upstream as it came.

    A quoted string (draft-ietf-httpapi-idempotency-key-header) and the same characters bare are one key.
    Errors: `BadInput` if it is empty, longer than 255 characters, or not printable ASCII.
    """
    quoted = len(value) > 1 and value[0] == value[-1] == '"'
    text = value[1:-1] if quoted else value
    _check(HEADER, text)
    if not (text.isascii() and text.isprintable()):
        raise BadInput(HEADER, "must be printable ASCII")
    return IdempotencyKey(_joined("header", tenant, text), value)


def _check(field: str, part: str) -> None:
    if not part:
        raise BadInput(field, "is missing; a repeatable write needs agent, task and operation, or an idempotency-key")
    if len(part) > LONGEST_PART:
        raise BadInput(field, f"has {len(part)} characters; at most {LONGEST_PART} are kept")


def _joined(*parts: str) -> str:
    return "".join(f"{len(part)}:{part}," for part in parts)  # netstrings: one reading only
