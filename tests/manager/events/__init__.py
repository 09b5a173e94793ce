# SPDX-License-Identifier: Apache-2.0
"""Events: claimed, done, and done again."""
