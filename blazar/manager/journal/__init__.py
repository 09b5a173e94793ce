# SPDX-License-Identifier: Apache-2.0
"""The journal in a manager: its entries are numbered."""
