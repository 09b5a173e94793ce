# SPDX-License-Identifier: Apache-2.0
"""The conformance suite, run on our types and on the example's, and on types that are broken on purpose."""
