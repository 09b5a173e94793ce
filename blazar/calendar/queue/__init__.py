# SPDX-License-Identifier: Apache-2.0
"""The waiting list: who has used how much, in which order requests are served, and what each of them gets.

What may enter: pure functions over ``blazar.model`` and ``blazar.calendar`` values. No database, no clock, no cloud.
Instants are seconds since the epoch. Nothing outside of this package calls it yet.
"""
