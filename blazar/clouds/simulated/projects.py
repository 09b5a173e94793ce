# SPDX-License-Identifier: Apache-2.0
"""The simulated Keystone: the projects in which the service user has a role."""

from __future__ import annotations

from blazar.clouds.ports.projects import NO_LIMIT, Limits, Quota, QuotaLimit
from blazar.clouds.simulated.service import SimulatedService, check_role
from blazar.clouds.simulated.volumes import total_usage


class SimulatedProjects(SimulatedService):
    """Implements the projects port: there is a role in every project but those that operators have closed."""

    def check_role(self, project_id: str) -> None:
        """Check that there is a role."""
        with self._calls.reading("check_role") as state:
            check_role(state, project_id)


class SimulatedQuotas(SimulatedService):
    """Implements the quotas port; there are none for subnets and ports."""

    def compute_quotas(self, project_id: str) -> Limits:
        """Return the quotas for servers, which are the same for all projects."""
        with self._calls.reading("compute_quotas") as state:
            now = self._clock.now()
            there = [s for s in state.servers.values() if s.project_id == project_id and not s.is_gone(now)]
            boot = state.boot
            return {
                Quota.SERVERS: _limit(boot.most_servers, len(there)),
                Quota.VCPUS: _limit(boot.most_vcpus, sum(server.vcpus for server in there)),
                Quota.MEMORY_MB: _limit(boot.most_memory_mb, sum(server.memory_mb for server in there)),
            }

    def volume_quotas(self, project_id: str) -> Limits:
        """Return the quotas for volumes of all types together."""
        with self._calls.reading("volume_quotas") as state:
            limits = state.block.quotas.get(project_id, {})
            used = total_usage(state, project_id, self._clock.now())
            return {
                Quota.VOLUMES: QuotaLimit(limits.get("volumes", NO_LIMIT), used.volumes),
                Quota.GIGABYTES: QuotaLimit(limits.get("gigabytes", NO_LIMIT), used.gigabytes),
            }

    def network_quotas(self, project_id: str) -> Limits:
        """Return the quota for networks, which is the same for all projects."""
        with self._calls.reading("network_quotas") as state:
            count = sum(found.project_id == project_id for found in state.networks.values())
            return {Quota.NETWORKS: _limit(state.most_networks, count)}


def _limit(most: int | None, used: int) -> QuotaLimit:
    return QuotaLimit(NO_LIMIT if most is None else most, used)
