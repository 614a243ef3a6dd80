"""
What SQLite raises for a file that it cannot use, and what it says of it.

Its complaint quotes the file. Where that is no UTF-8, Python cannot even make the error that SQLite meant, and raises another.
"""

from typing import Final

from sqlalchemy.exc import DatabaseError

FILE_ERRORS: Final = (DatabaseError, UnicodeDecodeError)


def said(error: DatabaseError | UnicodeDecodeError) -> str:
    """SQLite's own words, where there are any."""
    return str(error.orig) if isinstance(error, DatabaseError) else "what it holds is no text"
