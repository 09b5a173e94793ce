# SPDX-License-Identifier: Apache-2.0
"""What the API calls about leases, resources, the calendar and its feeds."""
