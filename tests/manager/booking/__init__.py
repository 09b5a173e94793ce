# SPDX-License-Identifier: Apache-2.0
"""What is asked of the calendar, and limits."""
