# SPDX-License-Identifier: Apache-2.0
"""The demo (``make demo``): a cloud of 60 hosts and months of leases, made before standalone mode starts on them."""
