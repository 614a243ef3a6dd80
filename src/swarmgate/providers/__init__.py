"""Dialect tables; no input or output."""
