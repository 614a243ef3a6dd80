"""Nothing but a place on the import path: folders below share the helpers that stand here (stage.py, wires.py)."""
