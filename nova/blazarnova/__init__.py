# SPDX-License-Identifier: Apache-2.0
"""The scheduler filter that restricts reserved hosts to the projects of their reservations.

It is a separate distribution because it is installed beside nova-scheduler, without the service.
"""

__version__ = "0.1.0"
