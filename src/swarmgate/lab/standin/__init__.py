"""Stand-ins for what a swarm calls: model providers and web hosts with limits of their own, on real sockets, each with a witness."""
