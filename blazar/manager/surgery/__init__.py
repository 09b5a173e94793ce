# SPDX-License-Identifier: Apache-2.0
"""Surgery on leases: they are split, merged, swapped, exchanged, and handed over to other projects."""
