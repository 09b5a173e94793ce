# SPDX-License-Identifier: Apache-2.0
"""Version 1 of the API at microversion 1.0, in dicts."""
