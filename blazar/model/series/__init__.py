# SPDX-License-Identifier: Apache-2.0
"""Series of leases that recur by a rule."""
