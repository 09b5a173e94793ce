# SPDX-License-Identifier: Apache-2.0
"""Writes ``docs/configuration.md`` from the options themselves: ``make sample-config``.

Only our own options are listed; those of libraries are described by the libraries.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from oslo_config import cfg

from blazar.cmd.config import GROUPS

HEAD = """\
# Configuration

<!-- Written by make sample-config from the options' own texts; change them there. -->

All options that Blazar itself reads from `blazar.conf`. `make sample-config` writes a sample of the whole file, with
the libraries' options, to `etc/blazar/blazar.conf.sample`, and one of the policy to `etc/blazar/policy.yaml.sample`.
Without `--config-file` the commands look for `~/.blazar/blazar.conf`, `~/blazar.conf`, `/etc/blazar/blazar.conf` and
`/etc/blazar.conf`; the WSGI application takes `$OS_BLAZAR_CONFIG_DIR/blazar.conf` first.

Names in brackets are older ones that are read as well. What nothing reads is named in the log of a
starting process, and by `blazar-status upgrade check`.
"""

LIBRARIES = """\
## Sections of the libraries

| section | what for | described at |
|---|---|---|
| `[keystone]` | another way for the manager to log in than the `os_*` options: any plugin, as application credentials | [keystoneauth](https://docs.openstack.org/keystoneauth/latest/plugin-options.html) |
| `[keystone_authtoken]` | how the API checks tokens | [keystonemiddleware](https://docs.openstack.org/keystonemiddleware/latest/middlewarearchitecture.html) |
| `[DEFAULT] transport_url`, `rpc_response_timeout`, `[oslo_messaging_rabbit]`, … | the message bus between API and managers | [oslo.messaging](https://docs.openstack.org/oslo.messaging/latest/configuration/opts.html) |
| `[oslo_limit]` | how Keystone is asked for limits, with `[enforcement] limits_source = unified_limits` | [oslo.limit](https://docs.openstack.org/oslo.limit/latest/user/usage.html) |
| `[oslo_messaging_notifications]` | where notifications go; by default nowhere | [oslo.messaging](https://docs.openstack.org/oslo.messaging/latest/configuration/opts.html) |
| `[DEFAULT] debug`, `log_file`, `log_dir`, … | logs | [oslo.log](https://docs.openstack.org/oslo.log/latest/configuration/index.html) |
| `[oslo_policy]` | the policy file | [oslo.policy](https://docs.openstack.org/oslo.policy/latest/configuration/index.html) |
| `[oslo_middleware]`, `[cors]`, `[healthcheck]` | proxies, browsers, health checks | [oslo.middleware](https://docs.openstack.org/oslo.middleware/latest/reference/opts.html) |
"""  # noqa: E501 - rows of a table

TYPES = {
    "boolean value": "true or false",
    "dict value": "name:number, with commas",
    "floating point value": "number",
    "host address value": "address or name",
    "integer value": "whole number",
    "list value": "list, with commas",
    "port value": "port",
    "string value": "text",
}


def page() -> str:
    """Return the page."""
    parts = [HEAD]
    for group, options in GROUPS.items():
        rows = sorted((o for o in options if not o.deprecated_for_removal), key=lambda option: option.name)
        parts.append("\n".join(_section(group, rows)))
    parts.append("\n".join(_ignored()))
    parts.append(LIBRARIES)
    return "\n".join(parts)


def _section(group: str, options: list[cfg.Opt]) -> Iterator[str]:
    yield f"## [{group}]\n"
    yield "| option | type | default | meaning |"
    yield "|---|---|---|---|"
    for option in options:
        yield f"| {_name(group, option)} | {_type(option)} | {_default(option)} | {_meaning(option)} |"
    yield ""


def _ignored() -> Iterator[str]:
    yield "## Known, and without effect\n"
    yield "Existing files may set these; they are no longer needed.\n"
    yield "| option | why |"
    yield "|---|---|"
    for group, options in GROUPS.items():
        for option in options:
            if option.deprecated_for_removal:
                yield f"| `[{group}] {option.name}` | {option.deprecated_reason} |"
    yield ""


def _name(group: str, option: cfg.Opt) -> str:
    older = [f"`[{old.group or group}] {old.name or option.name}`" for old in option.deprecated_opts]
    return f"`{option.name}`" + (f" ({', '.join(older)})" if older else "")


def _type(option: cfg.Opt) -> str:
    name = TYPES[option.type.type_name]
    low, high = getattr(option.type, "min", None), getattr(option.type, "max", None)
    if name == "port" or (low is None and high is None):
        return name
    return f"{name}, {low} to {high}" if high is not None else f"{name}, at least {low}"


def _default(option: cfg.Opt) -> str:
    value = option.default
    if value in (None, "", [], {}):
        return "none" if value is None else "empty"
    if isinstance(value, list):
        value = ",".join(value)
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _meaning(option: cfg.Opt) -> str:
    choices: dict[str, str | None] = getattr(option.type, "choices", None) or {}
    listed = "; ".join(f"`{choice}`: {text}" if choice else f"empty: {text}" for choice, text in choices.items())
    return " ".join([option.help, f"Choices: {listed}." if listed else ""]).strip().replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
