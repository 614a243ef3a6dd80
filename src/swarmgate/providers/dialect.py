"""
What a table of a provider says: the columns of `Dialect`, and nothing about any one provider.

Tables are facts from providers' documents and recorded answers; what follows from them is decided elsewhere.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from swarmgate.core.outcome import Kind

MINUTE_MS = 60_000
DAY_MS = 86_400_000
MONTH_MS = 31 * DAY_MS

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
RESPONSES = "/v1/responses"
EMBEDDINGS = "/v1/embeddings"
MESSAGES = "/v1/messages"
COUNT_TOKENS = "/v1/messages/count_tokens"


class CountsBy(StrEnum):
    """What a provider counts by: the keys inside one of it share its quotas and its refusals."""

    KEY = "key"
    ACCOUNT = "account"
    PROJECT = "project"
    WORKSPACE = "workspace"
    ORGANISATION = "organisation"
    RESOURCE = "resource"  # Azure: one deployment at one resource


class RateHeader(NamedTuple):
    """
    One quota that answers report: what it counts, and the headers that say so; "" = no such header.

    `window_ms` is its window, 0 = not known. `refills`: units come back one by one, so the reset says when all are back
    and the next call may fit long before; else everything comes back at the reset. A reset's form needs no column:
    `core/hints.py` tells seconds, Go durations, RFC 3339 and epochs apart.
    """

    dimension: str
    limit: str = ""
    remaining: str = ""
    reset: str = ""
    window_ms: int = 0
    refills: bool = False


class Mark(NamedTuple):
    """
    What gives an error away as of a kind: one of `codes` is its type or code, or one of `words` stands in its text.

    In lower case. `statuses` narrows it; with neither codes nor words the status alone decides.
    """

    kind: Kind
    codes: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    statuses: tuple[int, ...] = ()


class UsageFields(NamedTuple):
    """
    Where the counted tokens stand in an answer's `usage`, as dotted paths: of chat answers, then of others.

    `apart` are prompt tokens that `prompt` does not hold.
    """

    prompt: tuple[str, ...] = ("prompt_tokens", "input_tokens")
    completion: tuple[str, ...] = ("completion_tokens", "output_tokens")
    cached: tuple[str, ...] = ("prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens")
    apart: tuple[str, ...] = ()


class TokenCharge(NamedTuple):
    """
    What counts against tokens per minute when a call is admitted.

    `reserves_output`: `max_tokens` is taken at once, whatever is generated. `counts_cached`: prompt tokens read from a cache
    count too. When the gate admits a call it knows bytes, nothing of messages, and of caches the share that it saw.
    """

    reserves_output: bool = False
    counts_cached: bool = True


_USUAL_USAGE = UsageFields()
_USUAL_CHARGE = TokenCharge()


@dataclass(frozen=True, slots=True)
class Dialect:
    """
    One provider's way to speak.

    `hosts` are exact names, or endings that begin with a dot or a dash. `base_path` is what stands for callers' `/v1`,
    `paths` what of theirs is served, its own form first. `auth` names the header of the key; `headers` are sent where the caller sends none of that name.
    `injects_usage`: a stream counts its tokens only if `stream_options.include_usage` asks for it. The first of `rates`
    weighs keys. `errors_in_200` are the places where a body or an event of a 200 may hold an error, as dotted paths.
    `error_header` holds an error's type. `telltales` are headers by which a pasted answer is recognised.
    `counts_models`: a refusal of one model says nothing of the others. `unbilled` are requests that it bills nobody for,
    of those that the gate does not read: `METHOD /path`, and what is below it.
    """

    name: str
    document: str
    hosts: tuple[str, ...] = ()
    base_path: str = "/v1"
    paths: tuple[str, ...] = (CHAT, COMPLETIONS, EMBEDDINGS)
    auth: str = "bearer"
    headers: tuple[tuple[bytes, bytes], ...] = ()
    usage: UsageFields = _USUAL_USAGE
    injects_usage: bool = True
    rates: tuple[RateHeader, ...] = ()
    kinds: tuple[Mark, ...] = ()
    errors_in_200: tuple[str, ...] = ("error",)
    error_header: str = ""
    charge: TokenCharge = _USUAL_CHARGE
    counts_by: CountsBy = CountsBy.ACCOUNT
    counts_models: bool = True
    telltales: tuple[str, ...] = ()
    unbilled: tuple[str, ...] = ()

    def bills_nothing(self, method: str, path: str) -> bool:
        """Whether it bills nobody for such a request."""
        asked = f"{method} {path.rstrip('/')}/"
        return any(asked.startswith(f"{one}/") for one in self.unbilled)

    @property
    def remaining_names(self) -> frozenset[bytes]:
        """The headers that say what is left, as they stand in a head that was read."""
        return frozenset(row.remaining.encode() for row in self.rates if row.remaining)


def openai_style(
    dimension: str, suffix: str = "", window_ms: int = MINUTE_MS, *, reset: bool = True, refills: bool = True
) -> RateHeader:
    """`x-ratelimit-{limit,remaining,reset}-<suffix>`: OpenAI's names, which many others took over."""
    limit, remaining, back = (f"x-ratelimit-{word}-{suffix or dimension}" for word in ("limit", "remaining", "reset"))
    return RateHeader(dimension, limit, remaining, back if reset else "", window_ms, refills)
