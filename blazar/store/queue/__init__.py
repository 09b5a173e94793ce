# SPDX-License-Identifier: Apache-2.0
"""The waiting list, and leases that are prolonged while nobody else needs their resources."""
