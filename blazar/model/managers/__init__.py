# SPDX-License-Identifier: Apache-2.0
"""Managers that run, as others and operators see them."""
