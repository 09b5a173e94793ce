# SPDX-License-Identifier: Apache-2.0
"""Filters that nova-scheduler loads by their class path; each module here imports nova."""
