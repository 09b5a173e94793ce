# SPDX-License-Identifier: Apache-2.0
"""How the API reaches a manager: the interface, and its in-process twin for the standalone service.

What may enter: the manager's interface over domain values, and ways to carry a call to it. No rule of the domain.
"""
