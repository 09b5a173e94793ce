# SPDX-License-Identifier: Apache-2.0
"""The filter itself: reads what nova-scheduler hands it, and answers what the rules decide."""

from __future__ import annotations

from typing import Any

from nova.scheduler import filters  # the module, not the class: nova takes every filter class that it finds here
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
        help="Aggregate of the hosts that can be reserved and are not now. As in blazar.conf.",
    ),
    cfg.BoolOpt(
        "allow_preemptibles",
        default=False,
        help="Let servers with a preemptible flavor run on hosts that can be reserved, until a lease needs them.",
    ),
    cfg.StrOpt(
        "preemptible_aggregate",
        default="freepool",
        help="Aggregate whose hosts run preemptible servers, and no other ones.",
    ),
    cfg.StrOpt(
        "project_id_key",
        default="blazar:tenant",
        help="Accepted and not used: a project is let in by its id as a metadata key, whatever the value.",
    ),
    cfg.StrOpt(
        "blazar_owner",
        default="blazar:owner",
        help="Metadata key of an aggregate under which the owning project's id is found. As in blazar.conf.",
    ),
    cfg.StrOpt(
        "blazar_az_prefix",
        default="blazar_",
        help="How the availability zones of reservations start. As in blazar.conf.",
    ),
]

CONF = cfg.CONF
CONF.register_opts(OPTIONS, GROUP)


class BlazarFilter(filters.BaseHostFilter):
    """Keeps the hosts of reservations for those who reserved them."""

    RUN_ON_REBUILD = False
    """A rebuild stays on its host; to refuse it would only strand a server that was moved out of its reservation."""

    run_filter_once_per_request = True
    """Servers of one request share project, hint and flavor: who passes for the first passes for all."""

    def __init__(self) -> None:
        """Take the rules from nova.conf; nova makes the filter once, after it has read its configuration."""
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
        """Tell whether the host may run the server that is asked for."""
        request = _request(spec_obj)
        host = _host(host_state, self._rules)
        if host.doubts and not self._doubted:
            # Once is enough: it is so for every reservation, at every request.
            self._doubted = True
            LOG.warning(
                "On host %s, %s. Its hosts are kept for the reservation. Set blazar_az_prefix and blazar_owner of [%s] "
                "as [physical:host] and [nova] of blazar.conf have them",
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
        # Nova also fills in destinations of its own, which say the cell or the aggregates and no host.
        destination=_value(_value(spec, "requested_destination"), "host"),
    )


def _host(state: Any, rules: Rules) -> Host:
    # The zone is read from the metadata, where nova's `availability_zone` property has it from too.
    aggregates = ((aggregate.name, _value(aggregate, "metadata") or {}) for aggregate in state.aggregates)
    return host_in(state.host, aggregates, rules)


def _value(thing: Any, name: str) -> Any:
    # To read an attribute that was never set raises, or sends a query to the database.
    return getattr(thing, name) if thing is not None and name in thing else None


def _log(decision: Decision, request: Request, host: Host) -> None:
    if decision in (Decision.FOREIGN_RESERVATION, Decision.NAMED_BY_OPERATOR):
        names = ", ".join(sorted(request.reservations))
        project = request.project_id
        LOG.info("A server of project %s with the hint %s: host %s %s", project, names, host.name, decision.reason)
    elif not decision.passes:
        LOG.debug("Host %s does not pass: it %s", host.name, decision.reason)
