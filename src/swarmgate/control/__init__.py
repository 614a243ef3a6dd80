"""The operator plane in a process of its own: it imports the journal into the ledger, and serves the operator port."""
