# SPDX-License-Identifier: Apache-2.0
"""blazar-standalone: API, manager and a simulated cloud in one process, for trying Blazar out.

Without Keystone every client that can reach the port is trusted, so it listens on loopback only.
"""

from __future__ import annotations

import argparse
import fcntl
import ipaddress
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import Any, TextIO

from flask import Flask
from oslo_config import cfg
from oslo_policy import opts
from sqlalchemy.engine import Engine

from blazar import __version__
from blazar.api.app import create_app
from blazar.api.http.access import AccessLog
from blazar.api.http.identity import StandaloneIdentity
from blazar.api.http.middleware import ExchangeLog
from blazar.api.http.openapi import Served
from blazar.api.http.policy import Policy
from blazar.api.parts import all_parts
from blazar.clouds.hooks.http import HttpHooks
from blazar.clouds.ports import Cloud
from blazar.clouds.simulated import open_cloud
from blazar.cmd import assemble, config, health, logs, monitoring, pages, process, tracing, web
from blazar.cmd.config import ConfigurationError
from blazar.cmd.demo import energy, past
from blazar.cmd.demo.stage import give_switch, set_defaults
from blazar.cmd.fingerprints import take_fingerprints
from blazar.cmd.lease_options import read_defaults
from blazar.cmd.logs import add_filters
from blazar.enforcement import CloudIdentity
from blazar.manager.service import ManagerService
from blazar.model.base.clock import SystemClock
from blazar.model.base.errors import BlazarError, CloudUnavailable
from blazar.model.managers.presence import ManagerState
from blazar.model.resources.changes import Registration
from blazar.model.resources.resource import HOST
from blazar.store.sql.engine import make_engine
from blazar.store.sql.migrate import UnknownTables, upgrade

LOG = logging.getLogger("blazar.standalone")
THREADS = 16
MOST_REGIONS = 4
DATABASE = "blazar.sqlite"
CLOUD = "cloud.json"
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def main(arguments: list[str] | None = None) -> int:
    """Run until Ctrl-C or SIGTERM; return the exit code."""
    parser = argparse.ArgumentParser(prog="blazar-standalone", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="loopback address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", default=os.environ.get("BLAZAR_PORT", "1234"), help="port ($BLAZAR_PORT, 1234)")
    parser.add_argument("--data", default=os.environ.get("BLAZAR_DATA", "./var"), help="folder ($BLAZAR_DATA, ./var)")
    parser.add_argument("--config-file", action="append", help="blazar.conf with settings other than the defaults")
    parser.add_argument("--no-hosts", action="store_true", help="do not register the hosts of the simulated cloud")
    parser.add_argument("--demo", action="store_true", help="begin with a cloud of 60 hosts and months of leases")
    parser.add_argument(
        "--regions", type=int, choices=range(1, MOST_REGIONS + 1), default=1, help="simulated clouds (1)"
    )
    parser.add_argument("--debug", action="store_true", help="log at level DEBUG")
    parser.add_argument("--version", action="version", version=__version__)
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.DEBUG if options.debug else logging.INFO, format=LOG_FORMAT, stream=sys.stderr)
    add_filters()
    for noisy in ("alembic", "waitress.queue", "stevedore", "oslo_config"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    try:
        return _run(options)
    except (BlazarError, cfg.Error, OSError) as error:
        print(f"blazar-standalone: {error}", file=sys.stderr)
        return 1


def _run(options: argparse.Namespace) -> int:
    listener = _listen(options.host, options.port)
    data = Path(options.data)
    lock = _lock(data)
    conf = _configure(options, data)
    engine = _open_database(conf, data, demo=options.demo)
    clock = SystemClock()
    clouds = {
        name: with_own_hooks(
            conf, open_cloud(data / _file_of(number), clock=clock, number=number, down=data / f"{name}.down")
        )
        for number, name in enumerate(config.regions(conf), start=1)
    }
    manager = assemble.manager(conf, engine=engine, clouds=clouds, clock=clock, identity=identity_of(conf, listener))
    server, has_pages = _make_server(conf, manager, data, listener)
    serving = web.Serving(server)
    process.settle()
    stop_tracing = tracing.start(conf, "blazar-standalone")
    port = _open_port(conf, manager)
    manager.journal_numbering.tell_configuration(take_fingerprints(conf))
    manager.start(alone=True)
    manager.presence.enter(ManagerState.RUNNING)
    try:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        if not options.no_hosts and not options.demo:
            _register(clouds, manager)
        serving.stop_on_signals()
        _welcome(manager, clouds, listener, data, has_pages=has_pages)
        serving.run(_say_stopping)
    except KeyboardInterrupt:
        _say_stopping()
    finally:
        server.close()
        manager.stop()
        port.stop()
        engine.dispose()
        lock.close()
        stop_tracing()
    return 0


def _open_port(conf: cfg.ConfigOpts, manager: ManagerService) -> monitoring.MonitoringPort:
    """Return the port with the metrics of a manager and with its health, at which it looks from now on."""
    readiness = health.make_manager_readiness(manager)
    readiness.start()
    numbers = monitoring.list_pages(manager.readings.read, manager.sampling.read)
    return monitoring.open_trial_port(conf, numbers | health.list_pages(health.make_liveness(manager), readiness))


def _make_server(
    conf: cfg.ConfigOpts, manager: ManagerService, data: Path, listener: socket.socket
) -> tuple[Any, bool]:
    """Return the server of a manager's API, and whether it has the pages."""
    app = application(conf, manager, data)
    served = pages.without_keystone(app, conf)
    asked = served or app
    asked = ExchangeLog(asked) if conf.log_exchange else asked
    server = web.server(AccessLog(asked), listener=listener, threads=THREADS, trusts_proxy=False)
    return server, served is not None


def _lock(data: Path) -> TextIO:
    """Return the lock of a folder that is ours alone, and is made if it is not there."""
    try:
        keep_to_ourselves(data)
        return _alone(data)
    except OSError as error:
        reason = error.strerror or error
        raise ConfigurationError(
            f"the folder {data} cannot be used: {reason}; choose another with BLAZAR_DATA"
        ) from error


def _configure(options: argparse.Namespace, data: Path) -> cfg.ConfigOpts:
    """Return the configuration of the files that are named, as the options change it."""
    conf = config.load([], program="blazar-standalone", files=options.config_file or [])
    if (regions := max(options.regions, _clouds_in(data))) > 1:
        conf.set_default("regions", [f"Region{number}" for number in range(1, regions + 1)], group="cloud")
    if conf.log_file:
        _log_to_file(conf)
    monitoring.listen_by_default(conf)
    if options.demo:
        set_defaults(conf)
        energy.set_up(conf, data, datetime.now(UTC))
    if options.demo and config.regions(conf):
        raise ConfigurationError("the demo has one region; leave out --demo, or --regions and [cloud] regions")
    for leftover in config.leftovers(conf):
        LOG.warning("Option %s is set in the configuration and not used", leftover)
    return conf


def _log_to_file(conf: cfg.ConfigOpts) -> None:
    """Write the log to the file that is configured, too; ConfigurationError, OSError if it cannot be written."""
    logs.check(conf)
    handler = WatchedFileHandler(Path(conf.log_dir or "", conf.log_file))
    handler.setFormatter(logging.Formatter(LOG_FORMAT))
    logging.getLogger().addHandler(handler)
    add_filters()


def _open_database(conf: cfg.ConfigOpts, data: Path, *, demo: bool) -> Engine:
    """Return the database of a folder with the newest tables; a new one has the leases of the demo, if it is one."""
    database = (data / DATABASE).resolve()
    if conf.database.connection:
        LOG.warning("[database] connection is not used: standalone mode keeps its data in %s", database)
    if demo and not database.exists():
        print("Making the hosts and leases of the demo: under a minute.", file=sys.stderr, flush=True)
        with quiet():
            past.make(conf, database=database, cloud=data / CLOUD, now=datetime.now(UTC).replace(microsecond=0))
    engine = make_engine(f"sqlite:///{database}")
    try:
        upgrade(engine)
    except UnknownTables as error:
        raise ConfigurationError(f"{error}. Standalone mode keeps it in {data}; give another folder: --data") from error
    return engine


def _say_stopping() -> None:
    print("\nStopping, after finishing the work in progress.", file=sys.stderr, flush=True)


def application(conf: cfg.ConfigOpts, manager: ManagerService, data: Path) -> Flask:
    """Return the API of a manager, whose users are whom they say that they are."""
    return create_app(
        manager,
        identity=StandaloneIdentity(),
        policy=Policy(with_own_policy(conf, data), parts=all_parts()),
        served=Served(all_parts(), enable_v1=conf.enable_v1_api, v2_controllers=conf.api.api_v2_controllers),
        searches=conf.availability.max_searches,
        defaults=read_defaults(conf),
        bounds=config.api_bounds(conf),
        final_refusals=conf.api.final_refusals,
    )


@contextmanager
def quiet() -> Iterator[None]:
    """Log warnings only: what the leases of a made-up past went through is no news to who waits for the address."""
    root = logging.getLogger()
    level = root.level
    if level > logging.DEBUG:
        root.setLevel(max(level, logging.WARNING))
    try:
        yield
    finally:
        root.setLevel(level)


def _listen(host: str, port: str) -> socket.socket:
    if not port.isdigit() or not 0 <= int(port) <= 65535:
        raise ConfigurationError(f"port {port!r} is not a number from 0 to 65535; set BLAZAR_PORT or --port")
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        address = None
    if address is None or not address.is_loopback:
        raise ConfigurationError(
            f"refusing to listen on {host!r}: without Keystone every client that reaches the port is an admin, so "
            f"standalone mode listens on loopback only (127.0.0.1 or ::1)"
        )
    listener = socket.socket(socket.AF_INET6 if address.version == 6 else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((str(address), int(port)))
    except OSError as error:
        raise ConfigurationError(
            f"port {port} of {address} cannot be used ({error.strerror}); choose another with BLAZAR_PORT"
        ) from error
    return listener


def keep_to_ourselves(data: Path) -> None:
    """Create the folder, readable by this user only.

    An existing folder with other files keeps its mode; our files in it are private all the same, by the umask.
    """
    os.umask(0o077)
    try:
        data.mkdir(parents=True)
    except FileExistsError:
        if (data / DATABASE).exists() or not any(data.iterdir()):
            data.chmod(0o700)


def with_own_policy(conf: cfg.ConfigOpts, data: Path) -> cfg.ConfigOpts:
    """Return the configuration with policy files in the data folder by default; those in /etc belong to a cloud."""
    opts.set_defaults(conf)
    conf.set_default("policy_file", str((data / "policy.yaml").resolve()), group="oslo_policy")
    conf.set_default("policy_dirs", [str((data / "policy.d").resolve())], group="oslo_policy")
    return conf


def with_own_hooks(conf: cfg.ConfigOpts, cloud: Cloud) -> Cloud:
    """Return a cloud that calls real hooks if a master secret is configured, and simulated ones otherwise."""
    hooks = HttpHooks.configured(conf)
    return replace(cloud, hooks=hooks) if conf.generic.master_secrets else cloud


def _file_of(number: int) -> str:
    return CLOUD if number == 1 else f"cloud-{number}.json"


def _clouds_in(data: Path) -> int:
    """Return how many clouds an earlier start has left: leases may lie in each of them."""
    return max((number for number in range(1, MOST_REGIONS + 1) if (data / _file_of(number)).exists()), default=0)


def _register(clouds: Mapping[str, Cloud], manager: ManagerService) -> None:
    """Register the hosts of each region that has none: at its first start, or if that was stopped before."""
    known = {host.region for host in manager.resources.all(HOST)}
    for region, cloud in clouds.items():
        if region in known:
            continue
        where = {"region": region} if region else {}
        try:
            for hypervisor in cloud.compute.hypervisors():
                request = Registration({"name": hypervisor.hypervisor_hostname, **where})
                give_switch(manager, manager.resources.register(HOST, request))
        except CloudUnavailable as error:
            LOG.warning("The hosts of %s are registered at the next start: %s", region, error.message)


def _alone(data: Path) -> TextIO:
    """Lock the folder for as long as the returned file stays open; a crash releases the lock."""
    lock = (data / "lock").open("w", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConfigurationError(
            f"another blazar-standalone uses the folder {data}; stop it, or choose another folder with BLAZAR_DATA"
        ) from None
    return lock


def identity_of(conf: cfg.ConfigOpts, listener: socket.socket) -> CloudIdentity:
    """Return the identity for filters; there is no Keystone, so its URL is that of this process."""
    return CloudIdentity(auth_url=_url(listener), region_name=conf.os_region_name or "standalone", cafile=conf.cafile)


def _what(regions: Sequence[str]) -> str:
    return f"simulated clouds {', '.join(regions)}" if regions else "simulated cloud"


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _welcome(
    manager: ManagerService, clouds: Mapping[str, Cloud], listener: socket.socket, data: Path, *, has_pages: bool
) -> None:
    url = _url(listener)
    registered, regions = len(manager.resources.all(HOST)), [name for name in clouds if name]
    lines = [
        f"Blazar {__version__} (standalone, {_what(regions)}) on {url}; data in {data.resolve()}",
        *(["", f"Open {url}/ui/ in a browser."] if has_pages else []),
        "",
        "Try, in another terminal:",
    ]
    if not registered:
        lines += [
            f"  curl -s -X POST {url}/v1/os-hosts -H 'Content-Type: application/json' -d '{{\"name\": \"node-1\"}}'",
        ]
    lines += [
        f"  curl -s -X POST {url}/v1/leases -H 'Content-Type: application/json' -d '"
        '{"name": "first", "start_date": "now", "end_date": "2030-01-01 00:00", "reservations": [{"resource_type": '
        '"physical:host", "min": 1, "max": 1, "hypervisor_properties": "", "resource_properties": ""}]}'
        "'",
        f"  curl -s {url}/v1/leases",
        f"  curl -s {url}/v1/os-hosts",
        "Without a token you are the admin of project demo; -H 'X-Auth-Token: alice:physics' acts as alice in physics.",
        *(
            [f"While there is a file {data.resolve() / regions[-1]}.down, no service of {regions[-1]} answers."]
            if regions
            else []
        ),
        "Ctrl-C stops the service; the next start resumes with the same data.",
    ]
    print("\n".join(lines), file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
