# SPDX-License-Identifier: Apache-2.0
"""Problems: what an operator may have to act on, and what is in trouble."""
