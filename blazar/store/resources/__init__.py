# SPDX-License-Identifier: Apache-2.0
"""Registered resources, and what operators do to them."""
