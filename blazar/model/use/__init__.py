# SPDX-License-Identifier: Apache-2.0
"""What projects use: resource-hours, and the policies for leases that nobody uses."""
