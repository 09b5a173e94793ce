# SPDX-License-Identifier: Apache-2.0
"""What leases cost, and what projects may have: price lists, budgets, statements."""
