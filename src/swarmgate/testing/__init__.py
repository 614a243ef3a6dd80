"""Shipped test tools: manual clock, conformance kit, in-memory gate."""
