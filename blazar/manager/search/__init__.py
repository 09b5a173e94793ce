# SPDX-License-Identifier: Apache-2.0
"""Answers to the question when something is free, also for requests that were refused."""
