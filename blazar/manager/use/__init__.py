# SPDX-License-Identifier: Apache-2.0
"""Use it or lose it: what follows from how a lease is used, and who may hold it nevertheless."""
