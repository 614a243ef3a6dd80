"""
Names for answers that belong to no call: a caller can say which one it means, as it can of a call (`x-request-id`).

Unique beyond this process. Nothing is kept under such a name, since nothing was done.
"""

import os
from itertools import count
from typing import Final

FIELD: Final = b"x-request-id"
_PREFIX: Final = f"ref-{os.urandom(5).hex()}-"
_NUMBERS: Final = count()


def refusal_id() -> str:
    """The next one."""
    return f"{_PREFIX}{next(_NUMBERS):x}"
