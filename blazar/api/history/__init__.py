# SPDX-License-Identifier: Apache-2.0
"""What was done to objects of the service, and by whom: of one lease, and the journal of all."""
