"""`[records]`: whether what callers send and hear is kept, in the two places where it would be (design 6)."""

from pydantic import StrictBool

from swarmgate.config.table import Table


class Records(Table):
    """
    Both are on; what is off is not kept, and whoever would need it is told so.

    `dead_letters`: bodies of requests that were given up, to send them again; 1 MiB, 7 days. `answers`: answers to writes
    that carry a key, for their repeats; 64 KiB, 24 h.
    """

    dead_letters: StrictBool = True
    answers: StrictBool = True
