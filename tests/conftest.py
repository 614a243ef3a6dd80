"""What every test shares: this folder on the import path (helpers such as eventually.py), and no clock in properties."""

from hypothesis import settings

# A busy machine is no bug: what takes long is measured in benchmarks/, and a hang is ended by pytest-timeout.
settings.register_profile("swarmgate", deadline=None, print_blob=True)
settings.load_profile("swarmgate")
