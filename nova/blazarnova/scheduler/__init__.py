# SPDX-License-Identifier: Apache-2.0
"""What nova-scheduler asks of Blazar: the rules, and the filters that apply them."""
