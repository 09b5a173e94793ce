# SPDX-License-Identifier: Apache-2.0
"""Series of leases: requests, plans, changes, and the work that books their occurrences."""
