# SPDX-License-Identifier: Apache-2.0
"""Calls to what is no part of the cloud: which addresses may be called, signatures, and one deadline for each call."""
