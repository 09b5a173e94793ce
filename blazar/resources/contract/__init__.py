# SPDX-License-Identifier: Apache-2.0
"""What a resource type and a kind of resource are to the manager, and what several of them share."""
