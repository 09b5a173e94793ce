# SPDX-License-Identifier: Apache-2.0
"""What is due at an instant, and the claims on it: events of leases, and messages of the outbox."""
