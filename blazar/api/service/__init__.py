# SPDX-License-Identifier: Apache-2.0
"""The service itself: its versions, its health, and what it offers to the caller."""
