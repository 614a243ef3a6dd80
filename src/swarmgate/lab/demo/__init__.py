"""The main job: 2,000 agents through a gate, beside the same agents without one, measured at the targets."""
