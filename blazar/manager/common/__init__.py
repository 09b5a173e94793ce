# SPDX-License-Identifier: Apache-2.0
"""What all rooms share: the runtime, settings, claims, threads, notifications, and requests that wait for others."""
