"""Agents as HTTP clients on real sockets: what they send, how they come back, what is written down about each call."""
