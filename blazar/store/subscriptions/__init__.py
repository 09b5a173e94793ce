# SPDX-License-Identifier: Apache-2.0
"""Subscriptions: what their owners do with them, and the work on what is to be sent."""
