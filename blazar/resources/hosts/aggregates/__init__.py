# SPDX-License-Identifier: Apache-2.0
"""Host aggregates: the freepool, and those of reservations of whole hosts."""
