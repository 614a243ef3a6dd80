"""Dead letters: requests that were given up, kept for a person to look at, repeat or drop."""
