# SPDX-License-Identifier: Apache-2.0
"""A file or a folder for each kind of resource: its routes of 1.0, policy rules, and schemas of reservations.

What may enter: what only one kind needs. ``blazar.api.parts`` lists the kinds, and finds those of other packages.
"""
