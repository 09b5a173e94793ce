# SPDX-License-Identifier: Apache-2.0
"""The client of the reservation service: a library, the ``blazar`` command and an ``openstack`` plugin, to come.

Until then the existing python-blazarclient works with this service unmodified.
"""

__version__ = "0.1.0"
