# SPDX-License-Identifier: Apache-2.0
"""A manager that stands still in the middle of its work, while others go on: what it may touch when it wakes up.

A ``Stage`` has two managers. The first one works on the lease of project ``physics`` until, at a certain call to the
cloud, it stands still for one and a half times ``claim_ttl``: the clock goes on, and the second manager takes over and
finishes. Then, by the story's turn, nothing else happens, or the lease reaches its end, or is deleted, and a lease of
project ``chemistry`` starts on the same hosts or addresses, and has servers there. Then the first manager wakes up.
"""
