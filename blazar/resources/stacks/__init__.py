# SPDX-License-Identifier: Apache-2.0
"""Stacks of Heat: their templates, which are checked before Heat sees them, and what they take of the calendar."""
