# SPDX-License-Identifier: Apache-2.0
"""Reads what reports are made of."""
