# SPDX-License-Identifier: Apache-2.0
"""Power: how the power of a host is switched, and which states a host that may sleep goes through."""
