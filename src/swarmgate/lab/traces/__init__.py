"""Recorded traffic as workloads: readers of published traces and of the user's own, the shipped sample, the mix."""
