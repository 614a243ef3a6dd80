"""
What the lab says when it is given nonsense: one error type, with the field and the reason.

It stands in a file of its own because the limiters and witnesses, which judge the core, may import nothing from it.
"""


class LabError(ValueError):
    """
    An input that no simulated world can have; nothing was changed.

    `field` names the argument or the dotted key of a file; `reason` says what is wrong with it and what would be right.
    """

    def __init__(self, field: str, reason: str) -> None:
        self.field = field
        self.reason = reason
        super().__init__(f"{field}: {reason}")


def at_least(field: str, value: int, smallest: int) -> int:
    """The value itself, an integer not below `smallest`; LabError otherwise."""
    if type(value) is not int:
        raise LabError(field, f"{value!r} is not an integer")
    if value < smallest:
        raise LabError(field, f"{value} is below {smallest}")
    return value
