"""The simulator: the real core and pump on virtual time, with seeded targets, networks, stores and faults."""
