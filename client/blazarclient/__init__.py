# SPDX-License-Identifier: Apache-2.0
"""Client of Blazar, the reservation service of OpenStack clouds.

* ``blazarclient.client``: the interface that programs for Blazar have used since its version 1; returns dicts.
* ``blazarclient.library``: typed values, free time, waiting, pages, keys that make a repeated request safe.
* ``blazarclient.sdk``: ``connection.reservation`` for openstacksdk.
"""

__version__ = "5.0.0"
