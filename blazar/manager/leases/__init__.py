# SPDX-License-Identifier: Apache-2.0
"""A lease by itself, as pure decisions: its states, events, dates, flags, and references."""
