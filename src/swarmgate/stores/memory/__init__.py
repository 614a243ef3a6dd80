"""Budgets of one process."""
