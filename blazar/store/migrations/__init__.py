"""Alembic's environment: how a database becomes the one that ``tables`` describes."""
