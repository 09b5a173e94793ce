# SPDX-License-Identifier: Apache-2.0
"""Routes that split, merge, swap and hand over leases."""
