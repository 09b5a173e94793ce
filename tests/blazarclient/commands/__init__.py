# SPDX-License-Identifier: Apache-2.0
"""The commands that need microversion 1.1."""
