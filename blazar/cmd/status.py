# SPDX-License-Identifier: Apache-2.0
"""blazar-status: checks configuration, database, message bus and cloud before an upgrade or in case of trouble."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path

from keystoneauth1 import exceptions as ksa
from oslo_config import cfg
from sqlalchemy.exc import SQLAlchemyError

from blazar import RELEASE
from blazar.api import policy_advice
from blazar.api.parts import installed
from blazar.api.policy import Policy, explain_unread, list_rules
from blazar.clouds.openstack import Access, open_cloud
from blazar.clouds.openstack.options import credentials
from blazar.clouds.prometheus.http import Prometheus
from blazar.cmd import assemble, bus, config, config_advice, guard, leftovers, logs
from blazar.cmd.config import ConfigurationError
from blazar.model.errors import BlazarError
from blazar.model.regions import Regions
from blazar.store import revisions
from blazar.store.engine import explain_failure
from blazar.store.store import Store

USAGE = """usage: blazar-status [--config-file FILE] [--config-dir FOLDER] upgrade check
       blazar-status [--config-file FILE] [--config-dir FOLDER] leftovers [--end RESERVATION_ID ...] [--dry-run]
       blazar-status --help | --version

upgrade check checks the configuration, the database, the message bus and the cloud, and says how to fix each problem.
leftovers lists the reservations that are not on record and have something in the cloud, as after a backup was restored;
--end gives back what they have.
Exit codes: 0 no problem, 1 warnings, 2 failures that must be fixed, 255 the check could not be run."""


WITH_GROUPS = frozenset({"virtual.instance.plugin", "flavor.instance.plugin", "virtual.server.plugin"})
"""Plugins whose reservations may have server groups."""

IN_PROJECTS = frozenset({"virtual.server.plugin", "virtual.stack.plugin", "virtual.volume.plugin"})
"""Plugins whose reservations make something in the projects of users, and cannot without a role there."""

NETWORKED = frozenset({"virtual.floatingip.plugin", "network.plugin"})
"""Plugins whose reservations need Neutron."""

WITH_VOLUMES = frozenset({"virtual.volume.plugin"})

WITH_STACKS = frozenset({"virtual.stack.plugin"})

WITH_IMAGES = WITH_GROUPS | WITH_VOLUMES | {"physical.host.plugin"}
"""Plugins whose reservations name images, or make some before their end."""

NAMED = 5
"""Projects that a finding names."""


class Verdict(IntEnum):
    """Severity of a finding; also the exit code."""

    SUCCESS = 0
    WARNING = 1
    FAILURE = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of a check, with the way to fix a problem."""

    check: str
    verdict: Verdict
    text: str = ""
    region: str = ""


def main(arguments: list[str] | None = None) -> int:
    """Run ``upgrade check``; return 0, 1 or 2 for the worst finding, 255 if it could not be run."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if {"--help", "-h"} & set(given):
        print(USAGE)
        return 0
    if "--version" in given:
        print(f"blazar-status {RELEASE}")
        return 0
    if "leftovers" in given:
        return leftovers.run(given, USAGE)
    words = [word for word in given if word in ("upgrade", "check")]
    if words != ["upgrade", "check"]:
        print(USAGE, file=sys.stderr)
        return 255
    try:
        conf = config.load([word for word in given if word not in words], program="blazar-status")
    except (BlazarError, cfg.Error) as error:
        print(f"blazar-status: {error}", file=sys.stderr)
        return 255
    findings = [finding for check in CHECKS for finding in check(conf)]
    print(_table(findings))
    return max(finding.verdict for finding in findings)


def _options(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    found = config.leftovers(conf)
    for leftover in found:
        yield Finding("Options", Verdict.WARNING, config_advice.advise(leftover))
    for sentence in config_advice.list_renamed(conf):
        yield Finding("Options", Verdict.SUCCESS, sentence)
    if not found:
        yield Finding("Options", Verdict.SUCCESS)


def _log(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    try:
        logs.check(conf)
    except ConfigurationError as error:
        yield Finding("Log", Verdict.FAILURE, str(error))
    else:
        yield Finding("Log", Verdict.SUCCESS)


def _plugins(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    try:
        assemble.check_plugins(conf)
    except BlazarError as error:
        yield Finding("Plugins", Verdict.FAILURE, error.message)
    else:
        yield Finding("Plugins", Verdict.SUCCESS)


def _policy_file(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    try:
        rules = Policy(conf)
    except BlazarError as error:
        yield Finding("Policy file", Verdict.FAILURE, error.message)
        return
    yield from (found := [*_policy_json(rules), *_policy_checks(rules)])
    if not found:
        yield Finding("Policy file", Verdict.SUCCESS)
    yield from _policy_rules(rules.given)


def _policy_json(rules: Policy) -> Iterator[Finding]:
    """Warn of rules in JSON: those that the service reads, for JSON is YAML as well, and those that it does not."""
    if rules.file is not None and _is_json(rules.file):
        text = f"{rules.file} is JSON, which is read as YAML; convert it with oslopolicy-convert-json-to-yaml"
        yield Finding("Policy file", Verdict.WARNING, text)
    if rules.unread is not None:
        yield Finding("Policy file", Verdict.WARNING, explain_unread(rules.unread))


def _policy_checks(rules: Policy) -> Iterator[Finding]:
    for name in rules.not_understood:
        text = f"{name} cannot be understood: {rules.given[name]!r}; what cannot be read of it allows nobody"
        yield Finding("Policy file", Verdict.FAILURE, text)


def _policy_rules(given: Mapping[str, str]) -> Iterator[Finding]:
    """Say what the rules of policy files leave to defaults, and which of them do nothing."""
    if not given:
        return
    known = [rule.name for rule in list_rules()]
    for text in policy_advice.explain_mistakes(known, given):
        yield Finding("Policy rules", Verdict.WARNING, text)
    for text in policy_advice.explain_defaults(installed(), given):
        yield Finding("Policy rules", Verdict.SUCCESS, text)


def _database(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    try:
        current = revisions.current(assemble.database_engine(conf))
    except BlazarError as error:
        yield Finding("Database", Verdict.FAILURE, error.message)
        return
    except SQLAlchemyError as error:
        yield Finding("Database", Verdict.FAILURE, explain_failure(error))
        return
    if (text := revisions.wrong(current)) is None:
        yield Finding("Database", Verdict.SUCCESS)
    else:
        yield Finding("Database", Verdict.FAILURE, text)


def _message_bus(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    try:
        if bus.log_in(conf):
            yield Finding("Message bus", Verdict.SUCCESS)
    except ConfigurationError as error:
        yield Finding("Message bus", Verdict.FAILURE, error.message)


def _tokens(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    """Check that an API of this machine can validate tokens."""
    if not guard.is_given(conf):
        return
    try:
        guard.log_in(conf)
    except ConfigurationError as error:
        yield Finding("Tokens", Verdict.FAILURE, error.message)
    except ksa.ClientException as error:
        text = f"Keystone cannot be reached with the login of [{guard.GROUP}]: {error}"
        yield Finding("Tokens", Verdict.FAILURE, " ".join(text.split()))
    else:
        yield Finding("Tokens", Verdict.SUCCESS)


def _cloud(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    try:
        regions = config.regions(conf)
        access = Access(credentials(conf))
        project_id = access.check()
    except BlazarError as error:
        yield Finding("Keystone", Verdict.FAILURE, error.message)
        return
    yield Finding("Keystone", Verdict.SUCCESS)
    yield from _projects(conf, access, project_id)
    if not regions:
        yield from _services(conf, access)
        return
    yield from _lost_regions(conf, regions)
    for name in regions:
        try:
            found = _services(conf, Access(credentials(conf, region=name)))
            yield from (replace(each, region=name) for each in found)
        except BlazarError as error:
            yield Finding("Keystone", Verdict.FAILURE, error.message, name)


def _services(conf: cfg.ConfigOpts, access: Access) -> Iterator[Finding]:
    """Check the services of one region that its resource types need, each by one cheap call."""
    cloud = open_cloud(access)
    plugins = set(conf.manager.plugins)
    name = conf.nova.aggregate_freepool_name
    try:
        freepool = cloud.compute.aggregate(name)
    except BlazarError as error:
        yield Finding("Nova", Verdict.FAILURE, error.message)
    else:
        yield Finding("Nova", Verdict.SUCCESS)
        if freepool is None:
            yield Finding(
                "Freepool",
                Verdict.FAILURE,
                f"host aggregate {name!r} does not exist; create it without an availability zone",
            )
        elif freepool.availability_zone:
            yield Finding(
                "Freepool", Verdict.FAILURE, f"aggregate {name!r} has an availability zone; it must have none"
            )
        else:
            yield Finding("Freepool", Verdict.SUCCESS)
    try:
        cloud.placement.reservation_provider("-")
    except BlazarError as error:
        yield Finding("Placement", Verdict.FAILURE, error.message)
    else:
        yield Finding("Placement", Verdict.SUCCESS)
    if plugins & NETWORKED:
        networks = {"fields": "id", "limit": 1}
        yield _answers("Neutron", lambda: access.network.get("/networks", params=networks), plugins & NETWORKED)
    if plugins & WITH_VOLUMES:
        yield _answers("Cinder", lambda: access.volume.get("/types", params={"limit": 1}), plugins & WITH_VOLUMES)
    if plugins & WITH_IMAGES:
        lost = "images of new servers and volumes are not found, and before the end none are made of servers"
        yield _answers("Glance", lambda: access.image.get("/images", params={"limit": 1}), lost=lost)
    if plugins & WITH_STACKS:
        yield _answers("Heat", lambda: access.orchestration.get("/stacks", params={"limit": 1}), plugins & WITH_STACKS)


def _answers(
    service: str, look: Callable[[], object], needed_by: Collection[str] = (), *, lost: str = "reservations fail"
) -> Finding:
    """Check a service that only some resource types need: ``needed_by``, which could be left out."""
    try:
        look()
    except BlazarError as error:
        mend = "let the service user list what it has, or mend its endpoint in the catalog"
        if needed_by:
            mend += f"; without it, leave {', '.join(sorted(needed_by))} out of [manager] plugins"
        return Finding(service, Verdict.WARNING, f"{error.message}, so {lost}: {mend}")
    return Finding(service, Verdict.SUCCESS)


def _lost_regions(conf: cfg.ConfigOpts, regions: Regions) -> Iterator[Finding]:
    """Check that the regions of all resources are configured; nothing if the database cannot be used."""
    try:
        known = Store(assemble.database_engine(conf)).regions.in_use()
    except (BlazarError, SQLAlchemyError):
        return
    if lost := sorted(known - {"", *regions}):
        text = f"resources lie in {', '.join(lost)}, which [cloud] regions does not name; name it, for its leases wait"
        yield Finding("Regions", Verdict.FAILURE, text)
    else:
        yield Finding("Regions", Verdict.SUCCESS)


def _projects(conf: cfg.ConfigOpts, access: Access, own: str) -> Iterator[Finding]:
    """Check that the service user has a role in users' projects, where it has to make what belongs to them."""
    plugins = set(conf.manager.plugins)
    if not plugins & (WITH_GROUPS | IN_PROJECTS):
        return
    try:
        others = access.projects() - {own}
    except BlazarError as error:
        yield Finding("Projects", Verdict.WARNING, error.message)
        return
    if not others:
        yield Finding("Projects", Verdict.WARNING, f"the service user has no role in users' projects{_lost(plugins)}")
        return
    without = sorted(_projects_with_leases(conf) - others - {own})
    if without:
        more = f" and {len(without) - NAMED} more" if len(without) > NAMED else ""
        text = f"the service user has no role in these projects with leases: {', '.join(without[:NAMED])}{more}"
        yield Finding("Projects", Verdict.WARNING, text + _lost(plugins))
        return
    yield Finding("Projects", Verdict.SUCCESS)


def _lost(plugins: set[str]) -> str:
    """Return what does not work without a role in a project, and how to give it."""
    lost = []
    if plugins & WITH_GROUPS:
        lost.append(
            ", so the server groups of reservations with affinity belong to another project and users cannot name "
            "them in hints"
        )
    if plugins & IN_PROJECTS:
        lost.append(", so reservations of servers, stacks and volumes are refused there, or cannot start")
    return (
        f"{''.join(lost)}; grant a role in each domain: openstack role add --user blazar --user-domain Default "
        "--domain Default --inherited member"
    )


def _projects_with_leases(conf: cfg.ConfigOpts) -> frozenset[str]:
    """Return the projects of leases that have not ended; none if the database cannot be used, which is reported."""
    try:
        return Store(assemble.database_engine(conf)).leases.projects()
    except (BlazarError, SQLAlchemyError):
        return frozenset()


def _prometheus(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    """Check that Prometheus answers the query of idle servers, if there is one; wrong options are found before."""
    try:
        source = assemble.metrics(conf)
        if not isinstance(source, Prometheus):
            return
        source.check()
    except ConfigurationError:
        return
    except BlazarError as error:
        lost = "so no lease with a running server is released; mend it, or set [unused] source = states"
        yield Finding("Prometheus", Verdict.WARNING, f"{error.message}, {lost}")
    else:
        yield Finding("Prometheus", Verdict.SUCCESS)


CHECKS: tuple[Callable[[cfg.ConfigOpts], Iterator[Finding]], ...] = (
    _options,
    _log,
    _plugins,
    _policy_file,
    _message_bus,
    _database,
    _tokens,
    _cloud,
    _prometheus,
)


def _is_json(path: Path) -> bool:
    """Return whether a file has rules in JSON; ``{}``, which tools write for no rules, is YAML as well."""
    try:
        return bool(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return False


def _table(findings: list[Finding]) -> str:
    rows = [f"  {f.check:12} {f.verdict.name.capitalize():8} {_said(f)}".rstrip() for f in findings]
    return "\n".join(["Upgrade check results:", *rows])


def _said(finding: Finding) -> str:
    return ": ".join(part for part in (finding.region, finding.text) if part)


if __name__ == "__main__":
    sys.exit(main())
