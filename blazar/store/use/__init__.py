# SPDX-License-Identifier: Apache-2.0
"""How leases use what they have, and who else does."""
