# SPDX-License-Identifier: Apache-2.0
"""blazar-status: checks configuration, database, message bus and cloud before an upgrade or in case of trouble."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from enum import IntEnum
from pathlib import Path

from keystoneauth1 import exceptions as ksa
from oslo_config import cfg
from sqlalchemy.exc import SQLAlchemyError

from blazar import RELEASE
from blazar.api.http.policy import Policy, explain_defaults, explain_mistakes, explain_unread
from blazar.api.parts import all_parts, list_rules
from blazar.clouds.openstack import Access, open_cloud
from blazar.clouds.openstack.options import credentials
from blazar.clouds.prometheus import Prometheus
from blazar.cmd import assemble, config, config_advice, logins, logs
from blazar.cmd.card_advice import read_card_advice
from blazar.cmd.config import ConfigurationError
from blazar.model.base.errors import BlazarError
from blazar.model.base.values import dataclass, replace
from blazar.model.resources.regions import Regions
from blazar.store.sql import revisions
from blazar.store.sql.engine import explain_failure
from blazar.store.store import Store

USAGE = """usage: blazar-status [--config-file FILE] [--config-dir FOLDER] upgrade check
       blazar-status --help | --version

upgrade check checks the configuration, the database, the message bus and the cloud, and says how to fix each problem.
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


class CheckVerdict(IntEnum):
    """Severity of a finding; also the exit code."""

    SUCCESS = 0
    WARNING = 1
    FAILURE = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of a check, with the way to fix a problem."""

    check: str
    verdict: CheckVerdict
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
    print(render_table(findings))
    return max(finding.verdict for finding in findings)


def _options(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    found = [config_advice.advise(leftover) for leftover in config.leftovers(conf)]
    found += [*config_advice.list_contradictions(conf), *read_card_advice(conf)]
    for sentence in found:
        yield Finding("Options", CheckVerdict.WARNING, sentence)
    for sentence in config_advice.list_renamed(conf):
        yield Finding("Options", CheckVerdict.SUCCESS, sentence)
    if not found:
        yield Finding("Options", CheckVerdict.SUCCESS)


def _log(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    try:
        logs.check(conf)
    except ConfigurationError as error:
        yield Finding("Log", CheckVerdict.FAILURE, str(error))
    else:
        yield Finding("Log", CheckVerdict.SUCCESS)


def _plugins(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    try:
        assemble.check_plugins(conf)
    except BlazarError as error:
        yield Finding("Plugins", CheckVerdict.FAILURE, error.message)
    else:
        yield Finding("Plugins", CheckVerdict.SUCCESS)


def _policy_file(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    try:
        rules = Policy(conf, parts=all_parts())
    except BlazarError as error:
        yield Finding("Policy file", CheckVerdict.FAILURE, error.message)
        return
    yield from (found := [*_policy_json(rules), *_policy_checks(rules)])
    if not found:
        yield Finding("Policy file", CheckVerdict.SUCCESS)
    yield from _policy_rules(rules.given)


def _policy_json(rules: Policy) -> Iterator[Finding]:
    """Warn of rules in JSON: those that the service reads, for JSON is YAML as well, and those that it does not."""
    if rules.file is not None and _is_json(rules.file):
        text = f"{rules.file} is JSON, which is read as YAML; convert it with oslopolicy-convert-json-to-yaml"
        yield Finding("Policy file", CheckVerdict.WARNING, text)
    if rules.unread is not None:
        yield Finding("Policy file", CheckVerdict.WARNING, explain_unread(rules.unread))


def _policy_checks(rules: Policy) -> Iterator[Finding]:
    for name in rules.not_understood:
        text = f"{name} cannot be understood: {rules.given[name]!r}; what cannot be read of it allows nobody"
        yield Finding("Policy file", CheckVerdict.FAILURE, text)


def _policy_rules(given: Mapping[str, str]) -> Iterator[Finding]:
    """Say what the rules of policy files leave to defaults, and which of them do nothing."""
    if not given:
        return
    known = [rule.name for rule in list_rules()]
    for text in explain_mistakes(known, given):
        yield Finding("Policy rules", CheckVerdict.WARNING, text)
    for text in explain_defaults(all_parts(), given):
        yield Finding("Policy rules", CheckVerdict.SUCCESS, text)


def _database(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    try:
        current = revisions.read_revision(assemble.database_engine(conf))
    except BlazarError as error:
        yield Finding("Database", CheckVerdict.FAILURE, error.message)
        return
    except SQLAlchemyError as error:
        yield Finding("Database", CheckVerdict.FAILURE, explain_failure(error))
        return
    if (text := revisions.explain_revision(current)) is None:
        yield Finding("Database", CheckVerdict.SUCCESS)
    else:
        yield Finding("Database", CheckVerdict.FAILURE, text)


def _message_bus(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    try:
        if logins.log_in_to_bus(conf):
            yield Finding("Message bus", CheckVerdict.SUCCESS)
    except ConfigurationError as error:
        yield Finding("Message bus", CheckVerdict.FAILURE, error.message)


def _tokens(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    """Check that an API of this machine can validate tokens."""
    if not logins.has_token_login(conf):
        return
    try:
        logins.log_in_to_keystone(conf)
    except ConfigurationError as error:
        yield Finding("Tokens", CheckVerdict.FAILURE, error.message)
    except ksa.ClientException as error:
        text = f"Keystone cannot be reached with the login of [{logins.GROUP}]: {error}"
        yield Finding("Tokens", CheckVerdict.FAILURE, " ".join(text.split()))
    else:
        yield Finding("Tokens", CheckVerdict.SUCCESS)


def _cloud(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    try:
        regions = config.regions(conf)
        access = Access(credentials(conf))
        project_id = access.log_in()
    except BlazarError as error:
        yield Finding("Keystone", CheckVerdict.FAILURE, error.message)
        return
    yield Finding("Keystone", CheckVerdict.SUCCESS)
    yield from _projects(conf, access, project_id)
    if not regions:
        yield from _services(conf, access)
        return
    yield from _lost_regions(conf, regions)
    for name in regions:
        try:
            found = _services(conf, Access(credentials(conf, region=name)))
            yield from (replace(finding, region=name) for finding in found)
        except BlazarError as error:
            yield Finding("Keystone", CheckVerdict.FAILURE, error.message, name)


def _services(conf: cfg.ConfigOpts, access: Access) -> Iterator[Finding]:
    """Check the services of one region that its resource types need, each by one cheap call."""
    cloud = open_cloud(access)
    plugins = set(conf.manager.plugins)
    name = conf.nova.aggregate_freepool_name
    try:
        freepool = cloud.compute.aggregate(name)
    except BlazarError as error:
        yield Finding("Nova", CheckVerdict.FAILURE, error.message)
    else:
        yield Finding("Nova", CheckVerdict.SUCCESS)
        if freepool is None:
            yield Finding(
                "Freepool",
                CheckVerdict.FAILURE,
                f"host aggregate {name!r} does not exist; create it without an availability zone",
            )
        elif freepool.availability_zone:
            yield Finding(
                "Freepool", CheckVerdict.FAILURE, f"aggregate {name!r} has an availability zone; it must have none"
            )
        else:
            yield Finding("Freepool", CheckVerdict.SUCCESS)
    try:
        cloud.placement.reservation_provider("-")
    except BlazarError as error:
        yield Finding("Placement", CheckVerdict.FAILURE, error.message)
    else:
        yield Finding("Placement", CheckVerdict.SUCCESS)
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
        return Finding(service, CheckVerdict.WARNING, f"{error.message}, so {lost}: {mend}")
    return Finding(service, CheckVerdict.SUCCESS)


def _lost_regions(conf: cfg.ConfigOpts, regions: Regions) -> Iterator[Finding]:
    """Check that the regions of all resources are configured; nothing if the database cannot be used."""
    try:
        known = Store(assemble.database_engine(conf)).regions.list_used()
    except (BlazarError, SQLAlchemyError):
        return
    if lost := sorted(known - {"", *regions}):
        text = f"resources lie in {', '.join(lost)}, which [cloud] regions does not name; name it, for its leases wait"
        yield Finding("Regions", CheckVerdict.FAILURE, text)
    else:
        yield Finding("Regions", CheckVerdict.SUCCESS)


def _projects(conf: cfg.ConfigOpts, access: Access, own: str) -> Iterator[Finding]:
    """Check that the service user has a role in users' projects, where it has to make what belongs to them."""
    plugins = set(conf.manager.plugins)
    if not plugins & (WITH_GROUPS | IN_PROJECTS):
        return
    try:
        others = access.projects_with_role() - {own}
    except BlazarError as error:
        yield Finding("Projects", CheckVerdict.WARNING, error.message)
        return
    if not others:
        yield Finding(
            "Projects", CheckVerdict.WARNING, f"the service user has no role in users' projects{_losses(plugins)}"
        )
        return
    without = sorted(_projects_with_leases(conf) - others - {own})
    if without:
        more = f" and {len(without) - NAMED} more" if len(without) > NAMED else ""
        text = f"the service user has no role in these projects with leases: {', '.join(without[:NAMED])}{more}"
        yield Finding("Projects", CheckVerdict.WARNING, text + _losses(plugins))
        return
    yield Finding("Projects", CheckVerdict.SUCCESS)


def _losses(plugins: set[str]) -> str:
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
        return Store(assemble.database_engine(conf)).leases.list_projects()
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
        yield Finding("Prometheus", CheckVerdict.WARNING, f"{error.message}, {lost}")
    else:
        yield Finding("Prometheus", CheckVerdict.SUCCESS)


def _telling(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    """Say what users cannot be told by, which is no problem; wrong options are found before."""
    return (Finding(way, CheckVerdict.SUCCESS, text) for way, text in config_advice.list_ways_of_telling(conf))


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
    _telling,
)


def _is_json(path: Path) -> bool:
    """Return whether a file has rules in JSON; ``{}``, which tools write for no rules, is YAML as well."""
    try:
        return bool(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return False


def render_table(findings: list[Finding]) -> str:
    """Return findings as a table for people."""
    rows = [f"  {f.check:12} {f.verdict.name.capitalize():8} {_describe(f)}".rstrip() for f in findings]
    return "\n".join(["Upgrade check results:", *rows])


def _describe(finding: Finding) -> str:
    return ": ".join(part for part in (finding.region, finding.text) if part)


if __name__ == "__main__":
    sys.exit(main())
