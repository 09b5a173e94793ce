# SPDX-License-Identifier: Apache-2.0
"""Routes of kinds at 1.0."""
