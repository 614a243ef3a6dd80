"""swarmgate: the one gate through which every outgoing call of a swarm of AI agents leaves."""

__version__ = "0.1.0"
