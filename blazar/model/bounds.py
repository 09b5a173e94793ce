# SPDX-License-Identifier: Apache-2.0
"""Limits on the leases and reservations of a project, so that no member can fill the service or the cloud. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from blazar.model.errors import UsageDenied


@dataclass(frozen=True, slots=True)
class Bounds:
    """The maximum of leases of a project, reservations of a lease and reservations of a project; None: no limit.

    A lease counts until it has ended or is deleted, with or without reservations.
    """

    leases: int | None = None
    reservations_of_lease: int | None = None
    reservations: int | None = None

    @property
    def of_project(self) -> bool:
        """Return whether a limit depends on the other leases of the project."""
        return self.leases is not None or self.reservations is not None

    def check_lease(self, reservations: int) -> None:
        """Raise UsageDenied if a lease has too many reservations."""
        if self.reservations_of_lease is not None and reservations > self.reservations_of_lease:
            raise UsageDenied(
                f"reservations: the lease would have {reservations} reservations; the limit is "
                f"{self.reservations_of_lease} (reservations_per_lease); ask for several servers, hosts or addresses "
                "in one reservation, or create several leases"
            )

    def check_project(self, leases: int, reservations: int, *, more: int) -> None:
        """Raise UsageDenied if a project with these counts cannot have another lease with ``more`` reservations."""
        if self.leases is not None and leases >= self.leases:
            raise UsageDenied(
                f"the project has {leases} leases that have not ended; the limit is {self.leases} "
                "(leases_per_project); delete one, or wait until one ends"
            )
        if self.reservations is not None and more and reservations + more > self.reservations:
            raise UsageDenied(
                f"reservations: the project has {reservations} reservations in leases that have not ended, and the "
                f"lease would add {more}; the limit is {self.reservations} (reservations_per_project); delete a lease, "
                "or wait until one ends"
            )
