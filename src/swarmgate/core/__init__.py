"""What decides: rules without clock, random, input or output."""
