# SPDX-License-Identifier: Apache-2.0
"""The scheduler filter, which is installed beside nova and not beside the service."""
