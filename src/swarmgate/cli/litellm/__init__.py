"""
A LiteLLM proxy's configuration as one of ours: `places.py` knows providers, `reading.py` deployments, `conversion.py` the
whole, `writing.py` the TOML.

Nothing is guessed in silence: what has no counterpart is told by its name. Only the command line reads YAML.
"""
