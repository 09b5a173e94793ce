# SPDX-License-Identifier: Apache-2.0
"""Stacks as the conformance suite sees them: made of reservations of servers, on a simulated cloud."""

from __future__ import annotations

from collections.abc import Collection

from blazar.resources.contract.type import ResourceType
from blazar.resources.instances.flavor import FlavorInstance
from blazar.resources.stacks.type import VirtualStack
from blazarconformance import Harness, Invalid, Surroundings
from tests.conformance.sites import NAMES, NO_HOSTS, SETTINGS, OnHosts, _cloud, _hosts

SERVER = {"type": "OS::Nova::Server", "properties": {"flavor": "small", "image": "cirros"}}
NET = {"type": "OS::Neutron::Net", "properties": {}}


def template(**resources: object) -> dict[str, object]:
    return {"heat_template_version": "2018-08-31", "resources": resources}


class Stacks(OnHosts):
    """Stacks of servers, on hosts that several reservations share."""

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around, VirtualStack, _hosts, _cloud())

    def beside(self) -> tuple[ResourceType, ...]:
        return (FlavorInstance(self.cloud.cloud, SETTINGS),)

    def snapshot(self) -> dict[str, object]:
        whole = super().snapshot()
        with self.cloud.inspect() as state:
            now = self.cloud.compute._clock.now()
            there = [stack for stack in state.stacks.values() if not stack.is_gone(now)]
            whole["stacks"] = sorted(
                (stack.name, stack.action, *stack.tags, *(each.name for each in stack.resources)) for stack in there
            )
        return whole

    def usable(self, reservation_id: str) -> Collection[str]:
        with self.cloud.inspect() as state:
            now = self.cloud.compute._clock.now()
            servers = [
                state.servers.get(each.physical_id)
                for stack in state.stacks.values()
                if f"reservation:{reservation_id}" in stack.tags and not stack.is_gone(now)
                for each in stack.resources
            ]
            return [each.host for each in servers if each and each.host and each.status_at(now) == "ACTIVE"]

    def wreck(self, reservation_id: str) -> None:
        with self.cloud.change_state() as state:
            for key in [key for key, s in state.stacks.items() if f"reservation:{reservation_id}" in s.tags]:
                for each in state.stacks.pop(key).resources:
                    state.servers.pop(each.physical_id, None)


STACKS = Harness(
    name="virtual:stack",
    build=Stacks,
    registrations=NAMES,
    strangers=NO_HOSTS,
    request={"template": template(web=SERVER), "before_end": "default"},
    others=(
        {
            "template": template(web=SERVER, database={**SERVER, "properties": {"flavor": "traits", "image": "x"}}),
            "timeout_mins": 5,
            "before_end": "snapshot",
        },
    ),
    fits=8,
    needed=("template",),
    derived=("takes",),
    invalid=(
        Invalid({"template": template()}, "template"),
        Invalid({"template": template(net=NET)}, "template"),
        Invalid({"before_end": "migration"}, "before_end"),
        Invalid({"stack_name": "5 words"}, "stack_name"),
        Invalid({"timeout_mins": 0}, "timeout_mins"),
        Invalid({"files": {"file:///etc/passwd": "x"}}, "files"),
    ),
    waits=True,
    theirs=True,
    per_lease={"instance": 1, "vcpu": 8},
)
