# SPDX-License-Identifier: Apache-2.0
"""Alembic's environment: how a database becomes the one that ``tables`` describes."""
