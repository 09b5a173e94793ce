# SPDX-License-Identifier: Apache-2.0
"""What metrics tell of what is stored."""
