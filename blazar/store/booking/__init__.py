# SPDX-License-Identifier: Apache-2.0
"""What a booking writes, all in one transaction: the lease, what it gets, its history, its key."""
