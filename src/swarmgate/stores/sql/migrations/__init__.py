"""How the ledger's schema came to be, one step per file; each is written once and never changed."""
