# SPDX-License-Identifier: Apache-2.0
"""Subscriptions: the operations of users and operators on them."""
