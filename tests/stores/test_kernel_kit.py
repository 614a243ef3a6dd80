"""The reference itself passes the kit, and a store that breaks a promise does not."""

from swarmgate.testing.decider import BookDecider
from swarmgate.testing.kit import StoreChecks


class TestKernel(StoreChecks):
    def make(self):
        return BookDecider()
