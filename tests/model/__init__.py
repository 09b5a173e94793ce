# SPDX-License-Identifier: Apache-2.0
"""Tests of the model: values, and what is computed from them."""
