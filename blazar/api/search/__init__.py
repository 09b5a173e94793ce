# SPDX-License-Identifier: Apache-2.0
"""Free time, from microversion 1.1 on: when reservations fit, why not, how far a lease can be extended."""
