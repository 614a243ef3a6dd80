"""The data plane: model routes, identity, answers, relay."""
