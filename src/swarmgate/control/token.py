"""The operator's token: made once, kept in the state folder for its owner only, compared in constant time."""

import hmac
import os
import secrets
import stat
from pathlib import Path
from typing import Final

from swarmgate.core.errors import BadInput

FILE: Final = "operator.token"
_BYTES: Final = 32
_SHORTEST: Final = 32


def token(folder: Path) -> str:
    """
    The token of a state folder, made on first use.

    A file that others may read is made private again. Errors: `BadInput` for a link, another's file, or one that holds no
    token; OSError.
    """
    path = folder / FILE
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return _make(path)
    except OSError as error:
        raise BadInput(str(path), f"cannot be read: {error.strerror}") from None
    with os.fdopen(descriptor, encoding="utf-8", errors="replace") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise BadInput(str(path), "is no file of this user; remove it, and a new one is made")
        if status.st_mode & 0o077:
            os.fchmod(descriptor, 0o600)
        found = file.read(1_024).strip()
    if len(found) < _SHORTEST or not found.isascii():
        raise BadInput(str(path), "holds no token; remove it, and a new one is made")
    return found


def is_same(told: str, known: str) -> bool:
    """Whether two tokens are equal, in a time that tells nothing about them."""
    return hmac.compare_digest(told.encode("utf-8", "surrogatepass"), known.encode())


def _make(path: Path) -> str:
    made = secrets.token_urlsafe(_BYTES)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{made}\n")
    return made
