# SPDX-License-Identifier: Apache-2.0
"""Times, amounts, reasons, texts."""
