# SPDX-License-Identifier: Apache-2.0
"""How the API reaches a manager: the interface, and its transport over the message bus.

What may enter: the manager's interface over domain values, and the transport of a call. No rule of the domain.
"""
