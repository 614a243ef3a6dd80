"""Runs the ledger's migrations on the connection that the ledger hands in."""

from alembic import context

from swarmgate.stores.sql.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
