"""Facts that others publish and we only read: prices and abilities of models, limits of hosts, public suffixes."""
