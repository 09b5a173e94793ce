# SPDX-License-Identifier: Apache-2.0
"""Measurements: how long and how many statements requests take, and how that grows."""
