# SPDX-License-Identifier: Apache-2.0
"""What the rooms of the manager share."""
