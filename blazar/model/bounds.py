# SPDX-License-Identifier: Apache-2.0
"""What bounds the leases of one project, so that no member can fill the service or the cloud. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from blazar.model.errors import UsageDenied


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most leases of a project, reservations of a lease, and reservations of a project; None for no bound.

    Leases count until they have ended or are deleted, those without reservations as well.
    """

    leases: int | None = None
    reservations_of_lease: int | None = None
    reservations: int | None = None

    @property
    def of_project(self) -> bool:
        """Tell whether it counts what a project has besides."""
        return self.leases is not None or self.reservations is not None

    def check_lease(self, reservations: int) -> None:
        """UsageDenied if a lease has too many reservations."""
        if self.reservations_of_lease is not None and reservations > self.reservations_of_lease:
            raise UsageDenied(
                f"reservations: the lease would have {reservations} of them, and {self.reservations_of_lease} is the "
                "most (reservations_per_lease); ask for several servers, hosts or addresses in one reservation, or "
                "make several leases"
            )

    def check_project(self, leases: int, reservations: int, *, more: int) -> None:
        """UsageDenied if a project that has so many leases and reservations can not have another with ``more``."""
        if self.leases is not None and leases >= self.leases:
            raise UsageDenied(
                f"the project has {leases} leases that have not ended, and {self.leases} is the most "
                "(leases_per_project); delete one, or wait for the end of one"
            )
        if self.reservations is not None and more and reservations + more > self.reservations:
            raise UsageDenied(
                f"reservations: the project has {reservations} of them in leases that have not ended, the lease would "
                f"add {more}, and {self.reservations} is the most (reservations_per_project); delete a lease, or wait "
                "for the end of one"
            )
