# SPDX-License-Identifier: Apache-2.0
"""The API of problems, for operators."""
