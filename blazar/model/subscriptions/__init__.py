# SPDX-License-Identifier: Apache-2.0
"""Subscriptions: who wants to be told of which things that happen, and how that goes."""
