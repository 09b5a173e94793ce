# SPDX-License-Identifier: Apache-2.0
"""Surgery on leases: other hosts, one made two, two made one; and their transfer to another project."""
