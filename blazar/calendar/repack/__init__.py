# SPDX-License-Identifier: Apache-2.0
"""Repacking: which leases that have not started get other hosts, so that one more fits. Pure: no clock, no database.

A request is refused with a proof, a set of hosts that is full at an instant whatever is moved, or with none where the
search has found no way; what it finds is checked by construction, for it moves pieces on a board that holds no two
at once. Instants are seconds since the epoch.
"""
