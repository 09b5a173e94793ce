# SPDX-License-Identifier: Apache-2.0
"""What a project may not learn of another: a cloud whose other project bears a mark, and what is asked of it."""
