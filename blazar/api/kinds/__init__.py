# SPDX-License-Identifier: Apache-2.0
"""A module or a package for each kind of resource: its routes, policy rules, schemas and rendering.

What may enter: what only one kind needs. ``blazar.api.parts`` lists the kinds, and finds those of other packages.
"""
