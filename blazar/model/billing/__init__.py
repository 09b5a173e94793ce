# SPDX-License-Identifier: Apache-2.0
"""Money: price lists as data, and the lines that leases are charged by them."""
