# SPDX-License-Identifier: Apache-2.0
"""Commands that need a service of microversion 1.1, and those of the existing client with more options."""
