# SPDX-License-Identifier: Apache-2.0
"""One lease is created, changed or deleted: decisions, grants, and what is undone if they fail."""
