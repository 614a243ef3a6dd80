"""Where budgets live; the stores do not know each other."""
