# SPDX-License-Identifier: Apache-2.0
"""Commands that need more of the service than microversion 1.0, and those of the existing client with more options."""
