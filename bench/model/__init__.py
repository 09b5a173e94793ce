# SPDX-License-Identifier: Apache-2.0
"""What a request costs, how that grows, and what becomes of it on clouds that no test machine holds."""
