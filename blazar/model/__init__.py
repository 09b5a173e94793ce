# SPDX-License-Identifier: Apache-2.0
"""The domain as frozen values, a folder a noun; nothing here reads or writes anything.

What may enter: values and pure functions. No I/O, no clock, no library but the standard one. Times are aware
``datetime`` in UTC; amounts carry their unit in the name.
"""
