# SPDX-License-Identifier: Apache-2.0
"""The capability of types whose reservations need quotas of the project in the services of the cloud."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from blazar.clouds.ports.quotas import Quota, Quotas
from blazar.model.lease import Content

Needs = Mapping[Quota, int]
"""How much of each quota is needed."""


@runtime_checkable
class NeedsQuota(Protocol):
    """A type whose start needs quotas of the project. Without it they are not looked at when a lease is made."""

    @property
    def quotas(self) -> Quotas:
        """Return where the quotas are read."""

    def needs(self, parameters: Content) -> Needs:
        """Return what a reservation needs at least, without what others need that it is made of."""


@runtime_checkable
class NeedsQuotaAsPart(Protocol):
    """A type whose users need quotas when they use it, as what it is a part of does at its start."""

    def needs_as_part(self, parameters: Content) -> Needs:
        """Return what a reservation needs that another is made of, besides what that one needs itself."""
