# SPDX-License-Identifier: Apache-2.0
"""Hosts that nobody needs: the plan which of them sleep, and what follows from it."""
