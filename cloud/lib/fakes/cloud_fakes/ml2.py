# SPDX-License-Identifier: Apache-2.0
"""An ML2 mechanism driver that binds every port on every host at once.

There are no agents and no data path: a port asked for on a host is bound to
the first segment of its network and is ACTIVE straight away.
"""

from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.plugins.ml2 import api


class CloudFakeMechanismDriver(api.MechanismDriver):
    def initialize(self):
        pass

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
