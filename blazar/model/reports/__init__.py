# SPDX-License-Identifier: Apache-2.0
"""Reports: sums of a period, of what was reserved, used and lost. Pure; exact, in whole seconds of UTC."""
