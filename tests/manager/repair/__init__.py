# SPDX-License-Identifier: Apache-2.0
"""Tests of what operators see of trouble, and do about it."""
