# SPDX-License-Identifier: Apache-2.0
"""The ports of energy: a service that keeps what hosts drew, and what tells the carbon of a site's power."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import Protocol

from blazar.model.energy.carbon import HourlyCurve

Means = Mapping[str, Mapping[int, float]]
"""Mean watts by the name of a host and by hour, given by its first second since the epoch."""


class HostMeters(Protocol):
    """What hosts drew, by a service that keeps it."""

    @property
    def enabled(self) -> bool:
        """Whether there is such a service."""

    @property
    def is_by_region(self) -> bool:
        """Whether it can tell hosts of one name in two regions apart."""

    def read_means(self, hosts: Collection[str], since: int, until: int, region: str = "") -> Means:
        """Return the means of hours, both instants in seconds; an hour that is not over has that until now.

        The hosts are those of a region if it ``is_by_region``. What was not measured is left out. CloudUnavailable.
        """


class NoMeters:
    """No service keeps what hosts drew."""

    enabled = is_by_region = False

    def read_means(self, hosts: Collection[str], since: int, until: int, region: str = "") -> Means:
        """Return that nothing is known."""
        return {}


class CarbonSource(Protocol):
    """What tells the carbon intensity of a site."""

    @property
    def pue(self) -> Fraction:
        """The power usage effectiveness of the site."""

    @property
    def enabled(self) -> bool:
        """Whether there is a curve."""

    def read_curve(self) -> HourlyCurve | None:
        """Return the intensity by the hour as far as it is known here, without a call; None if there is no curve."""

    def fetch_curve(self) -> HourlyCurve | None:
        """Return it as its source tells it now; None if there is no curve.

        CloudUnavailable; InvalidInput with a sentence about a file.
        """
