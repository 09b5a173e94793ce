# SPDX-License-Identifier: Apache-2.0
"""The options of hooks, in the section of generic resources."""

from __future__ import annotations

from oslo_config import cfg

SECTION = "generic"

HOOK_OPTIONS: list[cfg.Opt] = [
    cfg.ListOpt(
        "master_secrets",
        default=[],
        secret=True,
        help="Secrets from which the secret of each thing is derived; its receiver is given what blazar-db-manage "
        "hook-secrets prints. Make one by: openssl rand -base64 32. Calls are signed with all of them: to replace one, "
        "put the new one in front, give the receivers their new secrets, then remove the old one. The same for all "
        "managers. Without any, no hook is called.",
    ),
    cfg.ListOpt(
        "allowed_hosts",
        default=[],
        help="Names of hosts that hooks may be at, such as control.lab.example, or *.lab.example for all below it. If "
        "neither this nor allowed_networks is set, any host but those that allowed_networks explains.",
    ),
    cfg.ListOpt(
        "allowed_networks",
        default=[],
        help="Networks that hooks may be at, such as 10.20.0.0/16. Addresses of this machine, link-local, multicast "
        "and reserved ones, and those of the metadata services of clouds, are only called if a network here has them. "
        "The address is checked when a connection is made.",
    ),
    cfg.BoolOpt(
        "allow_http",
        default=False,
        help="Also call hooks without TLS. The calls are signed, but can be read on their way.",
    ),
    cfg.FloatOpt(
        "timeout",
        default=15.0,
        min=1.0,
        max=30.0,
        help="Seconds within which a hook must answer. A call in the work on a lease takes at most half of [manager] "
        "claim_ttl; for longer work a hook answers 202, and is asked again.",
    ),
]
