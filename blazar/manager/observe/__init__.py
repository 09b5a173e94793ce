# SPDX-License-Identifier: Apache-2.0
"""What a manager tells of itself: what it has in memory, and what it reads in the database for that."""
