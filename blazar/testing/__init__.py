# SPDX-License-Identifier: Apache-2.0
"""For tests, of ours and of other packages: databases made at once, a clock that stands still, the conformance suite.

Nothing of the service imports it, and it needs no test framework.
"""
