# SPDX-License-Identifier: Apache-2.0
"""What projects use, and leases that nobody uses."""
