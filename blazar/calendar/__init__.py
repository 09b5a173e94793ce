# SPDX-License-Identifier: Apache-2.0
"""The calendar: which resources can serve demands in a window, and which of them to take.

What may enter: pure functions over ``blazar.model`` values. No database, no clock, no cloud.
"""
