# SPDX-License-Identifier: Apache-2.0
"""Reports over HTTP, from microversion 1.1 on: sums of a period, as JSON and as CSV."""
