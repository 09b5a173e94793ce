# SPDX-License-Identifier: Apache-2.0
"""Rules of recurrence."""
