# SPDX-License-Identifier: Apache-2.0
"""The store of power: the states of hosts, what has changed, and what a plan of sleep reads."""
