# SPDX-License-Identifier: Apache-2.0
"""Maintenance windows: what they would do, and the work on them, which any manager does."""
