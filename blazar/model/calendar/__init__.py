# SPDX-License-Identifier: Apache-2.0
"""What is asked of the calendar, what is promised on it, and what is shown of it."""
