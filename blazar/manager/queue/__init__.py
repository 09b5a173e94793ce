# SPDX-License-Identifier: Apache-2.0
"""The waiting list as values: who waits for what, and what others may take without delaying them."""
