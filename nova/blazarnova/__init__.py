# SPDX-License-Identifier: Apache-2.0
"""The scheduler filter that keeps reserved hosts for those who reserved them.

It is a distribution of its own because it is installed beside nova-scheduler, where the service is not.
"""

__version__ = "0.1.0"
