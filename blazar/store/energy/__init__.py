# SPDX-License-Identifier: Apache-2.0
"""What hosts drew and what that emitted, by the hour."""
