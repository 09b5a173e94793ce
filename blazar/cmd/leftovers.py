# SPDX-License-Identifier: Apache-2.0
"""``blazar-status leftovers``: reservations that are not on record and are in the cloud, as after a restored backup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oslo_config import cfg

from blazar.clouds.hooks.http import HttpHooks
from blazar.clouds.openstack import Access, open_cloud
from blazar.clouds.openstack.options import credentials
from blazar.cmd import assemble, config
from blazar.cmd.config import ConfigurationError
from blazar.manager.events.leftovers import Leftovers
from blazar.model.clock import SystemClock
from blazar.store import revisions
from blazar.store.clock import DatabaseClock


def lines(conf: cfg.ConfigOpts, ends: Sequence[str], *, dry_run: bool) -> Iterator[str]:
    """Return what to print: the list, or what is done about these reservations. BlazarError."""
    yield from told(_leftovers(conf), ends, dry_run=dry_run)


def told(leftovers: Leftovers, ends: Sequence[str], *, dry_run: bool) -> Iterator[str]:
    """List what is not on record, or end some of it."""
    if not ends:
        found = leftovers.all()
        for each in found:
            yield f"{each.reservation_id}  {each.resource_type}{f'  {each.region}' if each.region else ''}"
        yield f"{len(found)} reservations are not on record, and have something in the cloud"
        return
    for id_ in ends:
        if dry_run:
            known = any(each.reservation_id == id_ for each in leftovers.all())
            yield f"{id_} {'would be ended' if known else 'is not among them'}"
        else:
            yield f"{leftovers.end(id_).reservation_id} is ended; managers remove now what it has in the cloud"


def _leftovers(conf: cfg.ConfigOpts) -> Leftovers:
    engine = assemble.database_engine(conf)
    if (text := revisions.wrong(revisions.current(engine))) is not None:
        raise ConfigurationError(text)
    names = config.regions(conf).names
    accesses = {name: Access(credentials(conf, region=name)) for name in names} or {"": Access(credentials(conf))}
    hooks = HttpHooks.configured(conf)
    clouds = {name: open_cloud(each, az_aware=conf.nova.az_aware, hooks=hooks) for name, each in accesses.items()}
    clock = DatabaseClock(engine, SystemClock())
    clock.synchronize()
    return assemble.manager(conf, engine=engine, clouds=clouds, clock=clock).leftovers
