# SPDX-License-Identifier: Apache-2.0
"""Network segments that can be reserved, and reservations of networks."""
