"""Stand-ins with hidden limits, witnesses, workloads, simulation on virtual time."""
