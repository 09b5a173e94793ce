# SPDX-License-Identifier: Apache-2.0
"""Tests of what a manager tells of itself."""
