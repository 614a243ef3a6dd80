"""
What SQLite raises for a file that it cannot use, and what it says of it.

Its complaint quotes the file. Where that is no UTF-8, Python cannot even make the error that SQLite meant, and raises another.
"""

import sqlite3
from typing import Final

from sqlalchemy.exc import DatabaseError

FILE_ERRORS: Final = (DatabaseError, UnicodeDecodeError)

_AROUND_IT: Final = frozenset(  # SQLite's primary codes for what keeps a sound file from being used
    {
        sqlite3.SQLITE_PERM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN,
    }
)  # fmt: skip
_LOOK: Final = "it need not be damaged, leave it where it is: look whether the disk has room and works, whose file it is, and who else uses it"


def why_not(error: DatabaseError | UnicodeDecodeError, damaged: str, restore: str) -> str:
    """
    Why a file cannot be opened, and what to do; in the words `damaged` and `restore` where the file itself is to blame.

    Who moves a sound file away because the disk was full loses what it holds.
    """
    code = getattr(error.orig, "sqlite_errorcode", 0) if isinstance(error, DatabaseError) else 0
    if code & 0xFF in _AROUND_IT:
        return f"cannot be used now ({said(error)}); {_LOOK}"
    return f"{damaged} ({said(error)}); {restore}"


def said(error: DatabaseError | UnicodeDecodeError) -> str:
    """SQLite's own words, where there are any."""
    return str(error.orig) if isinstance(error, DatabaseError) else "what it holds is no text"
