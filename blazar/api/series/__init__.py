# SPDX-License-Identifier: Apache-2.0
"""The API of series of leases, from microversion 1.1 on."""
