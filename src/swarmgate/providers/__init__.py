"""
How each provider speaks: one table per dialect, and the pure functions that read answers by it. No I/O.

A provider more is one file with one `Dialect`, and its line in `tables.py`.
"""
