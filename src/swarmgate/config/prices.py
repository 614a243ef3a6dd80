"""`[prices."TARGET/MODEL"]`: prices of the operator's own, in US dollars per million tokens; they outrank the public list."""

from decimal import Decimal
from typing import Annotated

from pydantic import BeforeValidator, Field

from swarmgate.config.table import Table
from swarmgate.core.errors import BadInput
from swarmgate.core.price import Price, Rate

_MICRO = 1_000_000


def _dollars(value: object) -> int:
    """Dollars as micro-units, rounded up; TOML's floats are read as they are written."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise BadInput("", "is no price; write dollars per million tokens, as 0.15")
    try:
        micro = -int(-Decimal(str(value)) * _MICRO // 1)
    except (ArithmeticError, ValueError):
        micro = -1
    if not 0 <= micro <= 10**12:
        raise BadInput("", f"{value!r} is no price; write dollars per million tokens, as 0.15")
    return micro


Dollars = Annotated[int, BeforeValidator(_dollars)]


class PriceTable(Table):
    """
    What a model costs; the key is `target/model`, a model's name, or the beginning of either and `*`.

    Without `cached` or `cache_written` such tokens cost as much as `input`. 0 is a price: that of your own machine.
    """

    input: Dollars
    output: Dollars
    cached: Dollars | None = None
    cache_written: Dollars | None = None
    per_request: Dollars = Field(default=0, description="in dollars, of each call")

    @property
    def price(self) -> Price:
        """The price in micro-units."""
        return Price(
            _rate(self.input), _rate(self.output), _rate(self.cached), _rate(self.cache_written), self.per_request
        )


def _rate(micro: int | None) -> Rate:
    return () if micro is None else ((0, micro),)
