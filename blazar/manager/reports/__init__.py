# SPDX-License-Identifier: Apache-2.0
"""Reports: what was reserved, by whom, and what became of it."""
