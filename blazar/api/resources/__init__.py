# SPDX-License-Identifier: Apache-2.0
"""Resources of every kind: ``/v1/resources``, and the requests, handlers and lists that routes of kinds share."""
