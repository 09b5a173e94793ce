# SPDX-License-Identifier: Apache-2.0
"""An ML2 mechanism driver that binds every port on every host at once.

There are no agents and no data path: a port asked for on a host is bound to
the first segment of its network and is ACTIVE straight away.
"""

from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.plugins.ml2 import api
from neutron_lib.services.trunk import constants as trunk


class CloudFakeMechanismDriver(api.MechanismDriver):
    def initialize(self):
        # Only now: the module needs the configuration of Neutron.
        from neutron.services.trunk.drivers import base

        class Trunks(base.DriverBase):
            """Without one the trunk plugin does not start. As with Open vSwitch, a bound port gets no trunk."""

            is_loaded = True

        vlan = (trunk.SEGMENTATION_TYPE_VLAN,)
        self.trunks = Trunks("cloud_fake", (portbindings.VIF_TYPE_OVS,), vlan)

    def bind_port(self, context):
        for segment in context.segments_to_bind:
            context.set_binding(
                segment[api.ID],
                portbindings.VIF_TYPE_OVS,
                {portbindings.CAP_PORT_FILTER: True, portbindings.OVS_HYBRID_PLUG: False},
                status=constants.PORT_STATUS_ACTIVE,
            )
            return

    @property
    def connectivity(self):
        return portbindings.CONNECTIVITY_L2
