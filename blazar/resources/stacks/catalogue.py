# SPDX-License-Identifier: Apache-2.0
"""The types of Heat's resources that a stack may have, and what they take of the calendar.

All others are refused: what they take is not known, and some fetch addresses that a template names.
"""

from __future__ import annotations

SERVER = "OS::Nova::Server"
VOLUME = "OS::Cinder::Volume"
FLOATING_IP = "OS::Neutron::FloatingIP"
KEY_PAIR = "OS::Nova::KeyPair"

PRICED = frozenset({SERVER, VOLUME, FLOATING_IP})
"""Types that take something that can be reserved."""

AUTO_SCALING_GROUP = "OS::Heat::AutoScalingGroup"
RESOURCE_GROUP = "OS::Heat::ResourceGroup"

GROUPS = {AUTO_SCALING_GROUP: "resource", RESOURCE_GROUP: "resource_def"}
"""Types that make several resources of one definition, with the property that has the definition."""

NOTHING = "OS::Heat::None"
"""The type of a resource that is left out."""

FREE = frozenset(
    {
        KEY_PAIR,
        NOTHING,
        "OS::Cinder::VolumeAttachment",
        "OS::Heat::CloudConfig",
        "OS::Heat::Delay",
        "OS::Heat::RandomString",
        "OS::Heat::ScalingPolicy",
        "OS::Heat::SoftwareConfig",
        "OS::Heat::SoftwareDeployment",
        "OS::Heat::SoftwareDeploymentGroup",
        "OS::Heat::StructuredConfig",
        "OS::Heat::StructuredDeployment",
        "OS::Heat::StructuredDeploymentGroup",
        "OS::Heat::TestResource",
        "OS::Heat::Value",
        "OS::Heat::WaitCondition",
        "OS::Heat::WaitConditionHandle",
        "OS::Neutron::ExtraRoute",
        "OS::Neutron::ExtraRouteSet",
        "OS::Neutron::FloatingIPAssociation",
        "OS::Neutron::Net",
        "OS::Neutron::Port",
        "OS::Neutron::Router",
        "OS::Neutron::RouterInterface",
        "OS::Neutron::SecurityGroup",
        "OS::Neutron::SecurityGroupRule",
        "OS::Neutron::Subnet",
        "OS::Neutron::Trunk",
        "OS::Nova::ServerGroup",
    }
)
"""Types that take nothing but quota of the project."""

KNOWN = PRICED | FREE | GROUPS.keys()
