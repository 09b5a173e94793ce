# SPDX-License-Identifier: Apache-2.0
"""Which hosts are emptied for a lease, and where their servers go. Pure: no cloud, no clock, no database."""
