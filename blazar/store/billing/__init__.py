# SPDX-License-Identifier: Apache-2.0
"""What leases cost: the price lists that were published."""
