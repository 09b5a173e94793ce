# SPDX-License-Identifier: Apache-2.0
"""What all parts of a manager share: settings, claims, notifications, and the runtime that holds them."""
