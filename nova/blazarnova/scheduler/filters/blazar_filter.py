# SPDX-License-Identifier: Apache-2.0
"""The filter itself: converts nova-scheduler's objects, and returns the decision of the rules."""

from __future__ import annotations

from typing import Any

from nova.scheduler import filters  # the module, not the class: nova loads every filter class that it finds here
from oslo_config import cfg
from oslo_log import log as logging
from oslo_utils import strutils

from blazarnova.scheduler.decisions import Decision, Host, Request, Rules, decide, host_in, names_in

LOG = logging.getLogger(__name__)

HINT = "reservation"
RESERVATION_SPEC = "aggregate_instance_extra_specs:reservation"
PREEMPTIBLE_SPEC = "blazar:preemptible"

GROUP = "blazar:physical:host"
OPTIONS = [
    cfg.StrOpt(
        "aggregate_freepool_name",
        default="freepool",
        help="Aggregate of the registered hosts without a current reservation. Must be as in blazar.conf.",
    ),
    cfg.BoolOpt(
        "allow_preemptibles",
        default=False,
        help="Let servers with a preemptible flavor run on hosts that can be reserved, until a lease needs the hosts.",
    ),
    cfg.StrOpt(
        "preemptible_aggregate",
        default="freepool",
        help="Aggregate whose hosts run preemptible servers, and no others.",
    ),
    cfg.StrOpt(
        "project_id_key",
        default="blazar:tenant",
        help="Accepted but not used: a project is admitted by its id as a metadata key, whatever the value.",
    ),
    cfg.StrOpt(
        "blazar_owner",
        default="blazar:owner",
        help="Metadata key of an aggregate with the id of the owning project. Must be as in blazar.conf.",
    ),
    cfg.StrOpt(
        "blazar_az_prefix",
        default="blazar_",
        help="Prefix of the availability zones of reservations. Must be as in blazar.conf.",
    ),
]

CONF = cfg.CONF
CONF.register_opts(OPTIONS, GROUP)


class BlazarFilter(filters.BaseHostFilter):
    """Restricts the hosts of reservations to the projects that may use them."""

    RUN_ON_REBUILD = False
    """A rebuild stays on its host; refusing it would only block servers that were moved out of their reservation."""

    run_filter_once_per_request = True
    """Servers of one request share project, hint and flavor: a host that passes for one passes for all."""

    def __init__(self) -> None:
        """Read the rules from nova.conf; nova creates the filter once, after it has read its configuration."""
        super().__init__()
        options = CONF[GROUP]
        self._rules = Rules(
            freepool=options.aggregate_freepool_name,
            preemptible_pool=options.preemptible_aggregate,
            allow_preemptibles=options.allow_preemptibles,
            owner_key=options.blazar_owner,
            zone_prefix=options.blazar_az_prefix,
        )
        self._doubted = False

    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        """Return whether the host may run the requested server."""
        request = _request(spec_obj)
        host = _host(host_state, self._rules)
        if host.doubts and not self._doubted:
            # Logged once, as it applies to every reservation and request.
            self._doubted = True
            LOG.warning(
                "Host %s: %s. Hosts of such aggregates stay restricted to the reservation. Set blazar_az_prefix and "
                "blazar_owner of [%s] to the values of [physical:host] and [nova] in blazar.conf",
                host.name,
                "; ".join(host.doubts),
                GROUP,
            )
        decision = decide(request, host, self._rules)
        _log(decision, request, host)
        return decision.passes


def _request(spec: Any) -> Request:
    flavor = _value(spec, "flavor")
    extra_specs = _value(flavor, "extra_specs") or {}
    return Request(
        project_id=_value(spec, "project_id"),
        reservations=names_in(spec.get_scheduler_hint(HINT)),
        reservation_flavor=RESERVATION_SPEC in extra_specs,
        preemptible=strutils.bool_from_string(extra_specs.get(PREEMPTIBLE_SPEC)),
        # Nova also sets destinations of its own, which contain the cell or the aggregates but no host.
        destination=_value(_value(spec, "requested_destination"), "host"),
    )


def _host(state: Any, rules: Rules) -> Host:
    # Nova's `availability_zone` property reads the zone from the metadata, too.
    aggregates = ((aggregate.name, _value(aggregate, "metadata") or {}) for aggregate in state.aggregates)
    return host_in(state.host, aggregates, rules)


def _value(thing: Any, name: str) -> Any:
    # Reading an attribute that was never set raises, or sends a query to the database.
    return getattr(thing, name) if thing is not None and name in thing else None


def _log(decision: Decision, request: Request, host: Host) -> None:
    if decision in (Decision.FOREIGN_RESERVATION, Decision.NAMED_BY_OPERATOR):
        names = ", ".join(sorted(request.reservations))
        project = request.project_id
        LOG.info("Host %s %s: server of project %s with the hint %s", host.name, decision.reason, project, names)
    elif not decision.passes:
        LOG.debug("Host %s is refused: it %s", host.name, decision.reason)
