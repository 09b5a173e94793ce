# SPDX-License-Identifier: Apache-2.0
"""Each kind of resource, from registration to the end of leases."""
