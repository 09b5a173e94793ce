# SPDX-License-Identifier: Apache-2.0
"""Surgery on leases: other hosts for those that they have, one lease made two, two made one."""
