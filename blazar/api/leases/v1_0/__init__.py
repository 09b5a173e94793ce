# SPDX-License-Identifier: Apache-2.0
"""Leases at 1.0 and in version 2, as existing clients know them."""
