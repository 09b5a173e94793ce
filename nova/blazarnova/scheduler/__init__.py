# SPDX-License-Identifier: Apache-2.0
"""The part of Blazar in nova-scheduler: the rules, and the filter that applies them."""
