# SPDX-License-Identifier: Apache-2.0
"""What all of the store stands on: connections, transactions, tables, rows, pages and migrations."""
