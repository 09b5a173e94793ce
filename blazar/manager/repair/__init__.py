# SPDX-License-Identifier: Apache-2.0
"""What operators see of trouble, and what they do about it: the same calls for pages, clients and commands."""
