# SPDX-License-Identifier: Apache-2.0
"""Entry points of the processes: each reads the configuration, assembles the packages and runs until stopped."""
