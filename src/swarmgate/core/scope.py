"""
What an agent's key allows: whose it is, which targets and models it may call, how much, and until when.

A key names a tenant and never a priority. Its own caps were given to it by the operator, beside those of the configuration. What is known of a key here
is its hash; the key itself is shown once, to whoever made it (design 4: agents' keys; reliability AZ, TI).
"""

import re
from fnmatch import fnmatchcase
from hashlib import blake2b
from typing import Final, NamedTuple

PREFIX: Final = "sgk_"
NEVER_MS: Final = 0
ANY: Final = ("*",)
KEY_FORM: Final = rf"{PREFIX}[0-9a-f]{{10}}_"  # how a key begins, wherever somebody wrote it
SHOWS_KEY: Final = re.compile(KEY_FORM.encode())


class Scope(NamedTuple):
    """
    One agent key: `targets` and `models` are patterns; `expires_ms` 0 = never.

    `limits` are its own caps as they are written; they are counted for `capped_as`, which a key's successors keep.
    """

    id: str
    team: str = ""
    targets: tuple[str, ...] = ANY
    models: tuple[str, ...] = ANY
    expires_ms: int = NEVER_MS
    limits: tuple[str, ...] = ()
    capped_as: str = ""  # empty = it has no caps of its own

    def allows(self, target: str) -> bool:
        """Whether this target, or host, may be called."""
        return self.targets == ANY or any(fnmatchcase(target, pattern) for pattern in self.targets)

    def allows_model(self, model: str) -> bool:
        """Whether this model may be asked for."""
        return self.models == ANY or any(fnmatchcase(model, pattern) for pattern in self.models)

    def lives(self, now_ms: int) -> bool:
        """Whether the key may still be used."""
        return self.expires_ms == NEVER_MS or now_ms < self.expires_ms


NOBODY: Final = Scope("")  # a caller without a key


def key_hash(key: str, pepper: bytes) -> str:
    """The name under which a key is known; without the pepper nobody finds the key by trying."""
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=32, key=pepper).hexdigest()
