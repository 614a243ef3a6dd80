"""What agents and their scheduler may ask of a gate: budgets, plans, calls; read only (design 5: Data port)."""
