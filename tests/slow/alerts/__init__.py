# SPDX-License-Identifier: Apache-2.0
"""A service that is watched by a real Prometheus, with the rules that operators copy, while it has the faults of a day.

Time runs thirty times as fast in the rules, and in what the service does each minute. The manager and the API are
processes of their own, on PostgreSQL and RabbitMQ, to which the ways can be cut; Keystone, the service that charges
and the cloud are simulated.
"""
