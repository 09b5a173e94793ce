# SPDX-License-Identifier: Apache-2.0
"""The work on the waiting list: leases get their resources when their turn comes."""
