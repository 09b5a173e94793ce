# SPDX-License-Identifier: Apache-2.0
"""Calls to services that are no part of the cloud and that an operator names by URL: one deadline, and safe URLs."""
