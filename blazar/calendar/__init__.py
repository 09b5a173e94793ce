# SPDX-License-Identifier: Apache-2.0
"""The calendar: which resources can take a demand in a window, and which to take.

What may enter: pure functions over ``blazar.model`` values. No database, no clock, no cloud.
"""
