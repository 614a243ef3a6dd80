"""
The one error that the small rules raise: input that no rule can use. Nothing else lives here.

It is a ValueError, so that surfaces which know nothing of this package still treat it as bad input; state is
unchanged whenever it is raised.
"""


class BadInput(ValueError):
    """`field` names what was given (a header, a setting, a key's name; never a secret), `reason` says what is right."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason
