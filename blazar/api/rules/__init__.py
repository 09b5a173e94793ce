# SPDX-License-Identifier: Apache-2.0
"""Rules of operators on when projects may have leases."""
