# SPDX-License-Identifier: Apache-2.0
"""The power of hosts: what sleeps and why, by what each host is switched, and wakes."""
