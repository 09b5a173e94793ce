# SPDX-License-Identifier: Apache-2.0
"""What running managers tell of themselves, and what they have claimed."""
