# SPDX-License-Identifier: Apache-2.0
"""When something is free."""
