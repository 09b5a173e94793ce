# SPDX-License-Identifier: Apache-2.0
"""Energy and carbon: what hosts drew while leases had them, and what that emitted. Pure and exact."""
