"""What drives: an event pump that runs the core's commands and has no rule of its own."""
