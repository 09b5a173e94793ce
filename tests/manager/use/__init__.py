# SPDX-License-Identifier: Apache-2.0
"""Use it or lose it."""
