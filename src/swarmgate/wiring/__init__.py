"""
From configuration to a gate: the only package that knows everything.

`models.py` makes targets with keys, `caps.py` callers' caps, `egress.py` the policies of other hosts; `assemble.py` puts
them together.
"""

from swarmgate.wiring.assemble import gate, limits, plan, unpriced_models

__all__ = ["gate", "limits", "plan", "unpriced_models"]
