"""The ledger: calls, attempts, deferrals, revisions and costs as SQL tables."""
