# SPDX-License-Identifier: Apache-2.0
"""What every route keeps to."""
