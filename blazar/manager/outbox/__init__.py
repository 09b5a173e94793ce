# SPDX-License-Identifier: Apache-2.0
"""Usage enforcement as the manager uses it: the check before a booking, and the outbox of messages to filters."""
