# SPDX-License-Identifier: Apache-2.0
"""Feeds: links for calendar programs. They are made and revoked over the API, and read without a token."""
