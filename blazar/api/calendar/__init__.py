# SPDX-License-Identifier: Apache-2.0
"""The calendar over HTTP, from microversion 1.1 on: who has what when, capacity over time, properties. Reads only."""
