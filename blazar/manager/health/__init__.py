# SPDX-License-Identifier: Apache-2.0
"""Health of resources: the monitor polls them, and healing replaces failed ones."""
