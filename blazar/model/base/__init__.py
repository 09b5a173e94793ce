# SPDX-License-Identifier: Apache-2.0
"""What the rest of the model builds on: time, amounts, errors, pages of lists, texts."""
