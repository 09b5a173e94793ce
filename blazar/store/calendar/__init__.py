# SPDX-License-Identifier: Apache-2.0
"""Reads of the calendar: who has what of a resource, and when."""
