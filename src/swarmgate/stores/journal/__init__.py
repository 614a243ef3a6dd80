"""The append-only record that the data process writes, and how it is read."""
