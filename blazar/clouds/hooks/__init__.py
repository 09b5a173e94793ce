# SPDX-License-Identifier: Apache-2.0
"""The adapter of real hooks: signed HTTP calls, as Standard Webhooks 1.0.0 describes them."""
