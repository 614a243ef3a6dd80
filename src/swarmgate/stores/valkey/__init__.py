"""Budgets shared by many processes, in Valkey or Redis."""
