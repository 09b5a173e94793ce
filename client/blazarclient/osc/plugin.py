# SPDX-License-Identifier: Apache-2.0
"""What the ``openstack`` command asks of a plugin."""

from __future__ import annotations

import argparse
import os
from typing import Any

from blazarclient.cloud_options import versioned
from blazarclient.exception import NoBlazarEndpoint
from blazarclient.v1 import client

DEFAULT_API_VERSION = "1"
API_VERSION_OPTION = "os_reservation_api_version"
API_NAME = "reservation"
API_VERSIONS = {"1": "blazarclient.v1.client.Client"}


def make_client(instance: Any) -> Any:
    """Return the client, which is ``client_manager.reservation`` then."""
    return client.Client(DEFAULT_API_VERSION, session=instance.session, endpoint_override=endpoint(instance))


def endpoint(instance: Any) -> str:
    """Return the URL of the service in the region and at the interface that are chosen. NoBlazarEndpoint."""
    found = instance.get_endpoint_for_service_type(
        API_NAME, region_name=instance.region_name, interface=instance.interface
    )
    if not found:
        # Without this, an endpoint of another region would be taken.
        where = f" in region {instance.region_name}" if instance.region_name else ""
        interface = instance.interface or "public"
        raise NoBlazarEndpoint(
            f"The catalog of the cloud has no reservation service{where} at the {interface} interface"
        )
    return versioned(found)


def build_option_parser(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add the option of the version."""
    parser.add_argument(
        "--os-reservation-api-version",
        metavar="<reservation-api-version>",
        default=os.environ.get("OS_RESERVATION_API_VERSION"),
        choices=sorted(API_VERSIONS),
        help=f"Reservation API version, default={DEFAULT_API_VERSION} (Env: OS_RESERVATION_API_VERSION)",
    )
    return parser
