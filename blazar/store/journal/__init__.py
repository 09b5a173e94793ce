# SPDX-License-Identifier: Apache-2.0
"""The journal: entries are written with what they tell, numbered once that is committed, and read by their numbers."""
