# SPDX-License-Identifier: Apache-2.0
"""A small, real OpenStack cloud on one machine: up, down, status, check."""

import argparse
import concurrent.futures
import contextlib
import hashlib
import json
import os
import pathlib
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent.parent
LIB = HERE / "lib"
HOME = pathlib.Path(os.environ.get("OPENSTACK_CLOUD_HOME") or pathlib.Path.home() / ".cache" / "openstack-cloud")
VENV = HOME / "venv"
BIN = VENV / "bin"
ETC = HOME / "etc"
VAR = HOME / "var"
LOG = HOME / "log"
RUN = HOME / "run"
GOLDEN = HOME / "golden"

HOST = "127.0.0.1"
OFFSET = int(os.environ.get("OPENSTACK_CLOUD_PORT_OFFSET") or 0)
PASSWORD = os.environ.get("OPENSTACK_CLOUD_PASSWORD") or "secret"
HOSTS = int(os.environ.get("OPENSTACK_CLOUD_HOSTS") or 4)
THREADS = os.environ.get("OPENSTACK_CLOUD_API_THREADS") or "8"
REGION = "RegionOne"

PORTS = {
    name: port + OFFSET
    for name, port in {
        "keystone": 5000,
        "nova": 8774,
        "placement": 8778,
        "neutron": 9696,
        "glance": 9292,
        "cinder": 8776,
        "heat": 8004,
        "mariadb": 13306,
        "rabbitmq": 15673,
        "rabbitmq-dist": 15674,
        "epmd": 14369,
        "memcached": 11411,
    }.items()
}

OPTIONAL = [
    s
    for s in (os.environ.get("OPENSTACK_CLOUD_SERVICES") or "cinder,heat").replace(" ", "").split(",")
    if s and s != "none"
]
CLIENT = os.environ.get("OPENSTACK_CLOUD_RESERVATION_CLIENT") or ""
DATABASES = ["keystone", "glance", "placement", "nova_api", "nova", "nova_cell0", "neutron", "cinder", "heat", "blazar"]
INHERITING = "blazar"
SERVICE_USERS = ["nova", "placement", "neutron", "glance", "cinder", "heat", "blazar"]
DEMO = ["demo", "alt_demo"]


def say(text):
    print(f"[{time.monotonic() - STARTED:6.1f} s] {text}", flush=True)


STARTED = time.monotonic()


class Failure(Exception):
    pass


# --------------------------------------------------------------- processes


def ticks(pid):
    """When a process started, or None when there is none (or a zombie)."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = fields.rsplit(")", 1)[1].split()
    return None if fields[0] == "Z" else int(fields[19])


def record(name):
    try:
        return json.loads((RUN / f"{name}.json").read_text())
    except (OSError, ValueError):
        return None


def alive(name):
    item = record(name)
    return bool(item) and ticks(item["pid"]) == item["ticks"]


def environment(**extra):
    # Nothing else of the caller's, so that a service is only restarted when
    # something that concerns it changed.
    env = {k: os.environ[k] for k in ("HOME", "LD_LIBRARY_PATH", "TZ") if k in os.environ}
    env.update(
        PATH=f"{BIN}:/usr/sbin:/usr/bin:/sbin:/bin",
        LANG="C.UTF-8",
        VIRTUAL_ENV=str(VENV),
        PYTHONPATH=str(HOME / "fakes"),
        PYTHONUNBUFFERED="1",
        MALLOC_ARENA_MAX="2",
    )
    env.update({k: str(v) for k, v in extra.items()})
    return env


def start(name, command, env, stamp=""):
    """Start a process unless it runs already with the same configuration."""
    command = [str(c) for c in command]
    stamp = hashlib.sha256(json.dumps([command, stamp, sorted(env.items())]).encode()).hexdigest()
    running = alive(name)
    stale = running and (record(name)["stamp"] != stamp or name in RESTART)
    if DRY is not None:
        if stale:
            DRY.append(name)
        return
    if running and not stale:
        return
    if stale:
        stop([name])
    log = (LOG / f"{name}.log").open("ab")
    process = subprocess.Popen(
        command,
        env=env,
        cwd=VAR,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    CHILDREN[name] = process
    item = {"pid": process.pid, "ticks": ticks(process.pid), "stamp": stamp, "command": command, "order": time.time()}
    (RUN / f"{name}.json").write_text(json.dumps(item))


CHILDREN = {}
RESTART = set()
DRY = None


def stop_stale():
    """Stop together what has to be restarted."""
    global DRY
    DRY = []
    start_keystone()
    start_early()
    start_late()
    stale, DRY = DRY, None
    if stale:
        say(f"restarting, as asked or as the configuration changed: {', '.join(stale)}")
        stop(stale)
    RESTART.clear()


def stop(names, patience=20):
    """Stop exactly the recorded processes, and what they forked."""
    items = {}
    for name in names:
        item = record(name)
        if item and ticks(item["pid"]) == item["ticks"]:
            items[name] = item
            if patience:
                os.kill(item["pid"], signal.SIGTERM)
        elif item:
            (RUN / f"{name}.json").unlink()
    end = time.monotonic() + patience
    while items and time.monotonic() < end:
        for name, item in list(items.items()):
            if name in CHILDREN:
                CHILDREN[name].poll()
            if ticks(item["pid"]) != item["ticks"]:
                (RUN / f"{name}.json").unlink()
                del items[name]
        time.sleep(0.05)
    for name, item in items.items():
        if patience:
            print(f"{name}: did not stop in {patience} s, killing it")
        for pid in family(item["pid"]):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        (RUN / f"{name}.json").unlink()


def listening(port):
    with socket.socket() as s:
        s.settimeout(1)
        return s.connect_ex((HOST, port)) == 0


def wait(what, test, patience, watch=()):
    end = time.monotonic() + patience
    error = None
    while time.monotonic() < end:
        try:
            if test():
                return
        except Exception as e:
            error = e
        for name in watch:
            if name in CHILDREN:
                CHILDREN[name].poll()
            if not alive(name):
                raise Failure(f"{name} ended; see {LOG / name}.log")
        time.sleep(0.2)
    raise Failure(f"{what}: not ready after {patience} s ({error})")


def run(command, log, env=None, **kw):
    with open(LOG / f"{log}.log", "ab") as out:
        code = subprocess.call(
            [str(c) for c in command],
            env=env or environment(),
            cwd=VAR,
            stdout=out,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            **kw,
        )
    if code:
        raise Failure(f"{shlex.join(map(str, command))} ended with {code}; see {LOG / log}.log")


# ------------------------------------------------------------ installation


def install_packages():
    wanted = {
        "rabbitmq-server": "/usr/lib/rabbitmq/bin/rabbitmq-server",
        "memcached": "/usr/bin/memcached",
        "mariadb-server": "/usr/sbin/mariadbd",
    }
    missing = [p for p, path in wanted.items() if not os.path.exists(path)]
    if not missing:
        return
    say(f"installing Debian packages: {' '.join(missing)}")
    # The packages must not start their services: this cloud starts its own.
    policy = pathlib.Path("/usr/sbin/policy-rc.d")
    ours = not policy.exists()
    if ours:
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
    try:
        env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
        command = ["apt-get", "install", "-y", "--no-install-recommends"]
        try:
            run(command + missing, "install", env)
        except Failure:
            run(["apt-get", "update"], "install", env)
            run(command + missing, "install", env)
    finally:
        if ours:
            policy.unlink()


def install_python():
    mark = VENV / "installed"
    wanted = hashlib.sha256(
        (HERE / "requirements.txt").read_bytes() + (HERE / "constraints.txt").read_bytes()
    ).hexdigest()
    if not (mark.exists() and mark.read_text() == wanted):
        say("installing the services from the Python package index")
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        python = os.environ.get("OPENSTACK_CLOUD_PYTHON") or sys.executable
        run([python, "-m", "venv", VENV], "install", env)
        what = ["-r", HERE / "requirements.txt", "-c", HERE / "constraints.txt"]
        done = False
        if os.environ.get("OPENSTACK_CLOUD_INSTALLER") != "pip":
            # uv takes seconds where pip takes minutes.
            try:
                run([BIN / "pip", "install", "-q", "uv"], "install", env)
                run(
                    [BIN / "uv", "pip", "install", "--python", BIN / "python", "--compile-bytecode", *what],
                    "install",
                    env,
                )
                done = True
            except Failure:
                say("uv could not do it, trying pip")
        if not done:
            run([BIN / "pip", "install", *what], "install", env)
        mark.write_text(wanted)
        for name in ("extra", "client"):
            (VENV / name).unlink(missing_ok=True)
    package = os.environ.get("EXTRA_PYTHON_PACKAGE")
    mark = VENV / "extra"
    if package and not (mark.exists() and mark.read_text() == package):
        say(f"installing {package}")
        run(
            [BIN / "pip", "install", "-e", os.path.abspath(package), "-c", HERE / "constraints.txt"],
            "install",
            dict(os.environ),
        )
        mark.write_text(package)
    install_client()


def client_stamp():
    """What the client of reservations is: the release that Heat requires, or the sources of another."""
    if not CLIENT:
        return ""
    folder = pathlib.Path(CLIENT).resolve()
    files = [folder / "pyproject.toml", *sorted(folder.glob("*/**/*.py"))]
    told = [(str(path.relative_to(folder)), path.read_text()) for path in files if "build" not in path.parts]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def install_client():
    """Install another client of reservations in place of the one that Heat requires, or the latter again."""
    mark = VENV / "client"
    wanted = client_stamp()
    if (mark.read_text() if mark.exists() else "") == wanted:
        return
    say(f"installing {CLIENT}" if CLIENT else "installing the client of reservations that Heat requires")
    mark.write_text("unfinished")
    pip = [BIN / "pip", "install", "-q", "--force-reinstall", "--no-deps"]
    if CLIENT:
        # Builds leave files beside the sources.
        copy = HOME / "client"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(CLIENT, copy, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
        run([*pip, copy], "install", dict(os.environ))
    else:
        run([*pip, "-c", HERE / "constraints.txt", "python-blazarclient"], "install", dict(os.environ))
    mark.write_text(wanted)


# ----------------------------------------------------------- configuration


def database(name):
    return f"mysql+pymysql://cloud:{PASSWORD}@{HOST}:{PORTS['mariadb']}/{name}?charset=utf8mb4"


def url(service, path=""):
    return f"http://{HOST}:{PORTS[service]}{path}"


def transport():
    return f"rabbit://cloud:{PASSWORD}@{HOST}:{PORTS['rabbitmq']}/"


def credentials(user, **extra):
    return dict(
        {
            "auth_type": "password",
            "auth_url": url("keystone", "/v3"),
            "username": user,
            "password": PASSWORD,
            "project_name": "service",
            "user_domain_name": "Default",
            "project_domain_name": "Default",
            "region_name": REGION,
        },
        **extra,
    )


def authtoken(user):
    item = credentials(user)
    item.update(
        {
            "www_authenticate_uri": url("keystone", "/v3"),
            "memcached_servers": f"{HOST}:{PORTS['memcached']}",
            "service_token_roles": "service",
            "service_token_roles_required": "true",
        }
    )
    return item


def write(path, text):
    path = ETC / path
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    return path


def ini(path, sections):
    lines = ['# Written by "up" at each start.']
    for section, options in sections.items():
        lines.append(f"\n[{section}]")
        for key, value in options.items():
            for v in value if isinstance(value, list) else [value]:
                lines.append(f"{key} = {v}")
    return write(path, "\n".join(lines) + "\n")


def extra_filters():
    text = os.environ.get("NOVA_EXTRA_FILTERS") or ""
    return [f for f in text.replace(",", " ").split() if f]


FILTERS = [
    "ComputeFilter",
    "ComputeCapabilitiesFilter",
    "ImagePropertiesFilter",
    "ServerGroupAntiAffinityFilter",
    "ServerGroupAffinityFilter",
    "AggregateInstanceExtraSpecsFilter",
    "AggregateMultiTenancyIsolation",
    "PciPassthroughFilter",
]

# Fake PCI devices of the hosts from the third on; a card of the second product is used once, then to be cleaned.
GPUS = {
    "CLOUD_HOST_GPUS": os.environ.get("OPENSTACK_CLOUD_GPUS") or "4",
    "CLOUD_HOST_GPUS_USED_ONCE": os.environ.get("OPENSTACK_CLOUD_GPUS_USED_ONCE") or "1",
}
PCI = {
    "device_spec": [
        '{"vendor_id": "10de", "product_id": "20b5"}',
        '{"vendor_id": "10de", "product_id": "2330", "resource_class": "CUSTOM_GPU_H100", "one_time_use": "true"}',
    ],
    "alias": [
        '{"name": "a100", "vendor_id": "10de", "product_id": "20b5", "device_type": "type-PCI"}',
        '{"name": "h100", "resource_class": "CUSTOM_GPU_H100", "device_type": "type-PCI"}',
    ],
    "report_in_placement": "true",
}


def configure():
    common = {"use_stderr": "true", "debug": DEBUG, "transport_url": transport(), "my_ip": HOST}
    rabbit = {"heartbeat_timeout_threshold": 120, "rabbit_quorum_queue": "false", "amqp_durable_queues": "false"}
    sql = {"max_pool_size": 10, "max_overflow": 20, "connection_recycle_time": 280}

    def db(name):
        return dict(sql, connection=database(name))

    memcached = {
        "enabled": "true",
        "backend": "dogpile.cache.pymemcache",
        "memcache_servers": f"{HOST}:{PORTS['memcached']}",
    }
    locks = {"lock_path": VAR / "locks"}

    ini(
        "keystone/keystone.conf",
        {
            "DEFAULT": {
                "use_stderr": "true",
                "debug": DEBUG,
                "transport_url": transport(),
                "public_endpoint": url("keystone"),
            },
            "database": db("keystone"),
            "cache": memcached,
            "token": {"provider": "fernet", "expiration": 86400},
            "fernet_tokens": {"key_repository": VAR / "keystone/fernet"},
            "credential": {"key_repository": VAR / "keystone/credential"},
            "oslo_messaging_rabbit": rabbit,
        },
    )

    # Glance.
    paste = VENV / "etc/glance/glance-api-paste.ini"
    ini(
        "glance/glance-api.conf",
        {
            "DEFAULT": {
                "use_stderr": "true",
                "debug": DEBUG,
                "enabled_backends": "disk:file",
                "bind_host": HOST,
                "bind_port": PORTS["glance"],
                "worker_self_reference_url": url("glance"),
                "transport_url": transport(),
            },
            "database": db("glance"),
            "glance_store": {"default_backend": "disk"},
            "disk": {"filesystem_store_datadir": VAR / "glance/images"},
            "os_glance_staging_store": {"filesystem_store_datadir": VAR / "glance/staging"},
            "os_glance_tasks_store": {"filesystem_store_datadir": VAR / "glance/tasks"},
            "paste_deploy": {"flavor": "keystone", "config_file": paste},
            "keystone_authtoken": authtoken("glance"),
            "oslo_concurrency": locks,
            "oslo_messaging_rabbit": rabbit,
        },
    )

    ini(
        "placement/placement.conf",
        {
            "DEFAULT": {"use_stderr": "true", "debug": DEBUG},
            "placement_database": db("placement"),
            "api": {"auth_strategy": "keystone"},
            "keystone_authtoken": authtoken("placement"),
        },
    )

    # Neutron.
    neutron = dict(common)
    del neutron["my_ip"]
    neutron.update(
        {
            "core_plugin": "ml2",
            "service_plugins": "router,trunk,network_segment_range,port_forwarding",
            "auth_strategy": "keystone",
            "state_path": VAR / "neutron",
            "dhcp_agent_notification": "false",
            "network_scheduler_driver": "",
            "notify_nova_on_port_status_changes": "true",
            "notify_nova_on_port_data_changes": "true",
            "api_paste_config": VENV / "etc/neutron/api-paste.ini",
            "rpc_workers": 0,
            "global_physnet_mtu": 1500,
        }
    )
    del neutron["network_scheduler_driver"]
    ini(
        "neutron/neutron.conf",
        {
            "DEFAULT": neutron,
            "database": db("neutron"),
            "nova": credentials("nova"),
            "placement": credentials("placement"),
            "keystone_authtoken": authtoken("neutron"),
            "oslo_concurrency": {"lock_path": VAR / "neutron/locks"},
            "oslo_messaging_rabbit": rabbit,
            "quotas": {
                "quota_network": 1000,
                "quota_subnet": 1000,
                "quota_port": 5000,
                "quota_router": 1000,
                "quota_floatingip": 500,
                "quota_security_group": 1000,
                "quota_security_group_rule": 10000,
            },
            "ml2": {
                "type_drivers": "flat,vlan,vxlan",
                "project_network_types": "vxlan",
                "mechanism_drivers": "cloud_fake",
                "extension_drivers": "port_security",
            },
            "ml2_type_flat": {"flat_networks": "*"},
            "ml2_type_vlan": {"network_vlan_ranges": "physnet1:100:999"},
            "ml2_type_vxlan": {"vni_ranges": "1:10000"},
        },
    )

    # Nova: a file for all its services, one with the databases, one for the
    # scheduler and one for each fake host.
    extra = extra_filters()
    ini(
        "nova/nova.conf",
        {
            "DEFAULT": dict(
                common,
                **{
                    "compute_driver": "cloud_fakes.CloudFakeDriver",
                    "host": "controller",
                    "state_path": VAR / "nova",
                    "vif_plugging_is_fatal": "false",
                    "vif_plugging_timeout": 0,
                    "report_interval": 5,
                    "service_down_time": 30,
                    "periodic_fuzzy_delay": 0,
                    "update_resources_interval": 15,
                    "reserved_host_memory_mb": 0,
                    "cpu_allocation_ratio": os.environ.get("OPENSTACK_CLOUD_CPU_RATIO") or "1.0",
                    "ram_allocation_ratio": "1.0",
                    "disk_allocation_ratio": "1.0",
                },
            ),
            "api": {"auth_strategy": "keystone"},
            "wsgi": {"api_paste_config": VENV / "etc/nova/api-paste.ini"},
            "cache": memcached,
            "keystone_authtoken": authtoken("nova"),
            "service_user": dict(credentials("nova"), send_service_user_token="true"),
            "keystone": credentials("nova"),
            "placement": credentials("placement"),
            "neutron": credentials("neutron"),
            "glance": credentials("glance"),
            "cinder": dict(credentials("cinder"), os_region_name=REGION, catalog_info="block-storage::internalURL"),
            "vnc": {"enabled": "false"},
            "compute": {
                "live_migration_wait_for_vif_plug": "false",
                "provider_config_location": ETC / "nova-providers",
            },
            "quota": {
                "instances": 1000,
                "cores": 10000,
                "ram": 10000000,
                "server_groups": 1000,
                "server_group_members": 1000,
            },
            "conductor": {"workers": 1},
            "pci": PCI,
            # Which of them a server gets is Placement's choice; the API and the conductor have to know it, too.
            "filter_scheduler": {"pci_in_placement": "true"},
            "notifications": {
                "notification_format": "versioned",
                "versioned_notifications_topics": "versioned_notifications",
            },
            "oslo_messaging_notifications": {
                "driver": os.environ.get("OPENSTACK_CLOUD_NOTIFICATIONS") or "messagingv2"
            },
            "oslo_messaging_rabbit": rabbit,
            "oslo_concurrency": locks,
        },
    )
    blazar = any(f.endswith(".BlazarFilter") for f in extra)
    ini(
        "nova/scheduler.conf",
        {
            "scheduler": {"workers": 1, "discover_hosts_in_cells_interval": 3},
            "filter_scheduler": {
                "available_filters": ["nova.scheduler.filters.all_filters"] + extra,
                "enabled_filters": ",".join(FILTERS + [f.rsplit(".", 1)[-1] for f in extra]),
            },
            # Only servers with a flavor that says so make a difference.
            **({"blazar:physical:host": {"allow_preemptibles": "true"}} if blazar else {}),
        },
    )
    # Hosts have no access to the databases.
    ini("nova/database.conf", {"api_database": db("nova_api"), "database": db("nova")})
    for name in hosts():
        state = VAR / "nova" / name
        state.mkdir(parents=True, exist_ok=True)
        ini(
            f"nova/{name}.conf",
            {
                "DEFAULT": {"host": name, "state_path": state},
                "oslo_concurrency": {"lock_path": state / "locks"},
            },
        )

    if "cinder" in OPTIONAL:
        ini(
            "cinder/cinder.conf",
            {
                "DEFAULT": dict(
                    common,
                    **{
                        "auth_strategy": "keystone",
                        "host": "controller",
                        "state_path": VAR / "cinder",
                        "api_paste_config": VENV / "etc/cinder/api-paste.ini",
                        "resource_query_filters_file": VENV / "etc/cinder/resource_filters.json",
                        "enabled_backends": "fake",
                        "default_volume_type": "fake",
                        # What users delete is seen in the pools after so many seconds.
                        "backend_stats_polling_interval": 10,
                        "quota_volumes": 1000,
                        "quota_snapshots": 1000,
                        "quota_gigabytes": 100000,
                        "glance_api_servers": url("glance"),
                        "rootwrap_config": VENV / "etc/cinder/rootwrap.conf",
                    },
                ),
                "fake": {
                    "volume_driver": "cloud_fakes.volume.CloudFakeVolumeDriver",
                    "volume_backend_name": "fake",
                },
                "database": db("cinder"),
                "coordination": {"backend_url": f"file://{VAR}/cinder/locks"},
                "keystone_authtoken": authtoken("cinder"),
                "service_user": dict(credentials("cinder"), send_service_user_token="true"),
                "nova": credentials("nova"),
                "oslo_concurrency": {"lock_path": VAR / "cinder/locks"},
                "oslo_messaging_rabbit": rabbit,
            },
        )

    if "heat" in OPTIONAL:
        heat = dict(common)
        del heat["my_ip"]
        heat.update(
            {
                "region_name_for_services": REGION,
                "num_engine_workers": 1,
                "heat_metadata_server_url": url("heat"),
                "stack_domain_admin": "heat_domain_admin",
                "stack_domain_admin_password": PASSWORD,
                "stack_user_domain_name": "heat",
                "environment_dir": VENV / "etc/heat/environment.d",
                "template_dir": VENV / "etc/heat/templates",
            }
        )
        ini(
            "heat/heat.conf",
            {
                "DEFAULT": heat,
                "database": db("heat"),
                "paste_deploy": {"api_paste_config": VENV / "etc/heat/api-paste.ini"},
                "clients": {"endpoint_type": "publicURL"},
                "clients_keystone": {"auth_uri": url("keystone")},
                "trustee": {
                    k: v
                    for k, v in credentials("heat").items()
                    if k in ("auth_type", "auth_url", "username", "password", "user_domain_name")
                },
                "keystone_authtoken": authtoken("heat"),
                "oslo_concurrency": {"lock_path": VAR / "locks"},
                "oslo_messaging_rabbit": rabbit,
            },
        )


def hosts():
    return [f"compute-{n}" for n in range(1, HOSTS + 1)]


DEBUG = "true" if os.environ.get("OPENSTACK_CLOUD_DEBUG") else "false"


# ---------------------------------------------------------------- services


def start_mariadb():
    data = VAR / "mariadb"
    if not (data / "mysql").exists():
        shutil.rmtree(data, ignore_errors=True)
        run(
            [
                "mariadb-install-db",
                "--no-defaults",
                f"--datadir={data}",
                "--skip-test-db",
                "--auth-root-authentication-method=normal",
                *(["--user=root"] if os.geteuid() == 0 else []),
            ],
            "mariadb",
        )
    sql = [
        f"CREATE USER IF NOT EXISTS 'cloud'@'%' IDENTIFIED BY '{PASSWORD}';",
        f"ALTER USER 'cloud'@'%' IDENTIFIED BY '{PASSWORD}';",
        "GRANT ALL PRIVILEGES ON *.* TO 'cloud'@'%';",
    ]
    sql += [
        f"CREATE DATABASE IF NOT EXISTS {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci;" for name in DATABASES
    ]
    script = write("mariadb/start.sql", "\n".join(sql) + "\n")
    script.chmod(0o600)
    return start(
        "mariadb",
        [
            "/usr/sbin/mariadbd",
            "--no-defaults",
            f"--datadir={data}",
            *(["--user=root"] if os.geteuid() == 0 else []),
            f"--bind-address={HOST}",
            f"--port={PORTS['mariadb']}",
            f"--socket={RUN}/mariadb.sock",
            f"--pid-file={RUN}/mariadb.pid",
            f"--init-file={script}",
            "--character-set-server=utf8mb4",
            "--max-connections=1000",
            "--innodb-buffer-pool-size=256M",
            # This data may be lost in a crash of the machine: no disk flushes.
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-flush-method=nosync",
            "--skip-innodb-doublewrite",
            "--performance-schema=OFF",
            "--skip-log-bin",
            "--skip-name-resolve",
        ],
        environment(),
    )


def start_rabbitmq():
    home = VAR / "rabbitmq"
    epmd = environment(ERL_EPMD_ADDRESS=HOST, ERL_EPMD_PORT=PORTS["epmd"], HOME=home)
    if not alive("rabbitmq"):
        # No message outlives the cloud: a broker always starts empty.
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        (home / ".erlang.cookie").write_text(secrets.token_hex(16))
        (home / ".erlang.cookie").chmod(0o400)
    start("epmd", ["/usr/bin/epmd", "-port", PORTS["epmd"], "-address", HOST], epmd)
    wait("epmd", lambda: listening(PORTS["epmd"]), 20, ["epmd"])
    conf = write(
        "rabbitmq/rabbitmq.conf",
        "\n".join(
            [
                f"listeners.tcp.1 = {HOST}:{PORTS['rabbitmq']}",
                "default_user = cloud",
                f"default_pass = {PASSWORD}",
                "loopback_users = none",
                "log.console = true",
                "log.console.level = warning",
                "log.file = false",
                "vm_memory_high_watermark.relative = 0.2",
                "disk_free_limit.absolute = 50MB",
            ]
        )
        + "\n",
    )
    plugins = write("rabbitmq/enabled_plugins", "[].\n")
    return start(
        "rabbitmq",
        ["/usr/lib/rabbitmq/bin/rabbitmq-server"],
        dict(
            epmd,
            **{
                "RABBITMQ_NODENAME": f"cloud{OFFSET}@localhost",
                "RABBITMQ_NODE_IP_ADDRESS": HOST,
                "RABBITMQ_NODE_PORT": str(PORTS["rabbitmq"]),
                "RABBITMQ_DIST_PORT": str(PORTS["rabbitmq-dist"]),
                "RABBITMQ_CONFIG_FILE": str(conf),
                "RABBITMQ_CONF_ENV_FILE": "/dev/null",
                "RABBITMQ_ENABLED_PLUGINS_FILE": str(plugins),
                "RABBITMQ_MNESIA_BASE": str(home / "mnesia"),
                "RABBITMQ_LOG_BASE": str(LOG),
                "RABBITMQ_LOGS": "-",
                "RABBITMQ_PID_FILE": str(home / "pid"),
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+sbwt none +sbwtdcpu none +sbwtdio none "
                "-kernel inet_dist_use_interface {127,0,0,1}",
            },
        ),
    )


def start_memcached():
    return start(
        "memcached",
        [
            "/usr/bin/memcached",
            "-l",
            HOST,
            "-p",
            PORTS["memcached"],
            "-m",
            64,
            "-c",
            2048,
            *(["-u", "root"] if os.geteuid() == 0 else []),
        ],
        environment(),
    )


def stamp(folder, *files):
    """What a service read when it started."""
    if not files:
        files = [p.stem for p in sorted((ETC / folder).iterdir())]
    return [(f, (ETC / folder / f"{f}.conf").read_text()) for f in files]


def api(name, module, arguments=(), files=(), **env):
    folder = name.split("-")[0]
    start(
        name,
        [BIN / "python", LIB / "serve.py", HOST, PORTS[folder], THREADS, module, *arguments],
        environment(**env),
        stamp(folder, *files),
    )


def start_keystone():
    api("keystone", "keystone.wsgi.api", OS_KEYSTONE_CONFIG_DIR=ETC / "keystone")


def nova_conf(*more):
    return [f"--config-file={ETC}/nova/{name}.conf" for name in ("nova", *more)]


def start_early():
    """What needs no message bus to start."""
    api("placement", "placement.wsgi.api", OS_PLACEMENT_CONFIG_DIR=ETC / "placement")
    api("glance", "glance.wsgi.api", OS_GLANCE_CONFIG_DIR=ETC / "glance")


def start_late(quick=None):
    """The rest; with "quick" true only the first half, with false the other."""
    databases = "nova", "database"
    if quick is not False:
        start(
            "nova-conductor", [BIN / "nova-conductor", *nova_conf("database")], environment(), stamp("nova", *databases)
        )
        api(
            "neutron", "neutron.wsgi.api", OS_NEUTRON_CONFIG_DIR=ETC / "neutron", OS_NEUTRON_CONFIG_FILES="neutron.conf"
        )
        api(
            "nova-api",
            "nova.wsgi.osapi_compute",
            files=databases,
            OS_NOVA_CONFIG_DIR=ETC / "nova",
            OS_NOVA_CONFIG_FILES=";".join([str(VENV / "etc/nova/api-paste.ini"), "nova.conf", "database.conf"]),
        )
        start(
            "nova-scheduler",
            [BIN / "nova-scheduler", *nova_conf("database", "scheduler")],
            environment(),
            stamp("nova", *databases, "scheduler"),
        )
    if quick is True:
        return
    size = {k: v for k, v in os.environ.items() if k.startswith("CLOUD_HOST_")}
    # A host keeps the driver that it has loaded.
    driver = [(LIB / "fakes/cloud_fakes" / f"{part}.py").read_text() for part in ("virt", "moves")]
    for name in hosts():
        start(
            name,
            [BIN / "python", LIB / "compute.py", *nova_conf(name)],
            environment(**size, **(GPUS if name in hosts()[2:] else {})),
            [*stamp("nova", "nova", name), driver],
        )
    if "cinder" in OPTIONAL:
        arguments = [f"--config-file={ETC}/cinder/cinder.conf"]
        api("cinder-api", "cinder.wsgi.api", arguments)
        for name in ("cinder-scheduler", "cinder-volume"):
            start(name, [BIN / name, *arguments], environment(), stamp("cinder"))
    if "heat" in OPTIONAL:
        arguments = [f"--config-file={ETC}/heat/heat.conf"]
        api("heat-api", "heat.wsgi.api", arguments)
        # It keeps the client that it has loaded.
        start("heat-engine", [BIN / "heat-engine", *arguments], environment(), [*stamp("heat"), client_stamp()])


# --------------------------------------------------------------- bootstrap


def sync_databases():
    """Create the tables, two programs at a time; once for each version."""
    mark = VAR / "schema"
    fresh = not mark.exists()
    if not fresh and mark.read_text() == schema():
        return
    say("creating the databases of the services")
    nova = [BIN / "nova-manage", *nova_conf("database")]

    def keystone():
        base = [BIN / "keystone-manage", f"--config-file={ETC}/keystone/keystone.conf"]
        run(base + ["db_sync"], "bootstrap")
        user = ["--keystone-user=root", "--keystone-group=root"] if os.geteuid() == 0 else []
        run(base + ["fernet_setup"] + user, "bootstrap")
        run(base + ["credential_setup"] + user, "bootstrap")
        run(
            base
            + ["bootstrap", "--bootstrap-password", PASSWORD, "--bootstrap-region-id", REGION]
            + [f"--bootstrap-{i}-url={url('keystone', '/v3')}" for i in ("public", "internal", "admin")],
            "bootstrap",
        )

    def nova_all():
        run(nova + ["api_db", "sync"], "bootstrap")
        run(nova + ["cell_v2", "map_cell0", "--database_connection", database("nova_cell0")], "bootstrap")
        run(nova + ["db", "sync"], "bootstrap")
        cells = subprocess.run(
            [str(c) for c in nova] + ["cell_v2", "list_cells"], env=environment(), capture_output=True, text=True
        ).stdout
        if "cell1" not in cells:
            run(nova + ["cell_v2", "create_cell", "--name", "cell1"], "bootstrap")

    def glance():
        run([BIN / "glance-manage", f"--config-file={ETC}/glance/glance-api.conf", "db_sync"], "bootstrap")

    def placement():
        run([BIN / "placement-manage", f"--config-file={ETC}/placement/placement.conf", "db", "sync"], "bootstrap")

    def neutron():
        run([BIN / "neutron-db-manage", f"--config-file={ETC}/neutron/neutron.conf", "upgrade", "heads"], "bootstrap")

    def cinder():
        run([BIN / "cinder-manage", f"--config-file={ETC}/cinder/cinder.conf", "db", "sync"], "bootstrap")

    def heat():
        run([BIN / "heat-manage", f"--config-file={ETC}/heat/heat.conf", "db_sync"], "bootstrap")

    jobs = [keystone, nova_all, neutron, glance, placement]
    jobs += [{"cinder": cinder, "heat": heat}[o] for o in OPTIONAL]
    with concurrent.futures.ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
        for future in [pool.submit(job) for job in jobs]:
            future.result()
    mark.write_text(schema())
    if not fresh:
        return
    # Keep a copy of the empty tables, for "--fresh" and "--wipe".
    stop(["mariadb"], 60)
    shutil.rmtree(GOLDEN, ignore_errors=True)
    GOLDEN.mkdir()
    for name in ("mariadb", "keystone", "schema"):
        subprocess.check_call(["cp", "-a", str(VAR / name), str(GOLDEN)])
    start_mariadb()
    wait("MariaDB", lambda: listening(PORTS["mariadb"]), 120, ["mariadb"])


def schema():
    """What the tables depend on: the addresses of the cells are in them."""
    return hashlib.sha256(
        ((HERE / "requirements.txt").read_text() + json.dumps([OFFSET, PASSWORD, OPTIONAL])).encode()
    ).hexdigest()


def recall():
    """Start from the copy of the empty tables, where it still fits."""
    if (VAR / "schema").exists() or not (GOLDEN / "schema").exists():
        return
    if (GOLDEN / "schema").read_text() == schema():
        for name in ("mariadb", "keystone", "schema"):
            shutil.rmtree(VAR / name, ignore_errors=True)
            subprocess.check_call(["cp", "-a", str(GOLDEN / name), str(VAR)])


class Session:
    """Just enough of an HTTP client."""

    def __init__(self):
        self.token = None

    def call(self, method, address, body=None, headers=None, raw=None):
        request = urllib.request.Request(address, method=method)
        if self.token:
            request.add_header("X-Auth-Token", self.token)
        for key, value in (headers or {}).items():
            request.add_header(key, value)
        data = raw
        if body is not None:
            data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        try:
            with OPENER.open(request, data, timeout=120) as answer:
                text = answer.read()
                self.headers = answer.headers
        except urllib.error.HTTPError as e:
            raise Failure(f"{method} {address}: {e.code} {e.read()[:500].decode(errors='replace')}") from e
        try:
            return json.loads(text) if text else {}
        except ValueError:
            return text

    def login(self, user="admin", project="admin"):
        domain = {"name": "Default"}
        self.token = None
        self.call(
            "POST",
            url("keystone", "/v3/auth/tokens"),
            {
                "auth": {
                    "identity": {
                        "methods": ["password"],
                        "password": {"user": {"name": user, "domain": domain, "password": PASSWORD}},
                    },
                    "scope": {"project": {"name": project, "domain": domain}},
                }
            },
        )
        self.token = self.headers["X-Subject-Token"]
        return self


OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def bootstrap_identity(s):
    """Users, projects, roles and the catalogue; what exists is kept."""
    v3 = url("keystone", "/v3")

    def ensure(kind, plural, name, **more):
        found = s.call("GET", f"{v3}/{plural}?name={name}")[plural]
        for item in found:
            if all(item.get(k) == v for k, v in more.items() if k in ("type",)):
                return item["id"]
        return s.call("POST", f"{v3}/{plural}", {kind: dict({"name": name}, **more)})[kind]["id"]

    def grant(project, user, role):
        s.call("PUT", f"{v3}/projects/{project}/users/{user}/roles/{role}")

    roles = {r["name"]: r["id"] for r in s.call("GET", f"{v3}/roles")["roles"]}
    for name in ("admin", "member", "reader", "service", "heat_stack_owner", "heat_stack_user"):
        if name not in roles:
            roles[name] = ensure("role", "roles", name)

    service = ensure("project", "projects", "service", domain_id="default")
    for name in SERVICE_USERS:
        user = ensure("user", "users", name, domain_id="default", password=PASSWORD)
        grant(service, user, roles["admin"])
        grant(service, user, roles["service"])
    for name in DEMO:
        project = ensure("project", "projects", name, domain_id="default")
        user = ensure("user", "users", name, domain_id="default", password=PASSWORD)
        grant(project, user, roles["member"])
        grant(project, user, roles["reader"])
        grant(project, user, roles["heat_stack_owner"])
    # The service under test acts in the projects of its users, also those made later.
    user = ensure("user", "users", INHERITING)
    s.call("PUT", f"{v3}/OS-INHERIT/domains/default/users/{user}/roles/{roles['member']}/inherited_to_projects")

    catalogue = [
        ("compute", "nova", url("nova", "/v2.1")),
        ("placement", "placement", url("placement")),
        ("network", "neutron", url("neutron")),
        ("image", "glance", url("glance")),
    ]
    if "cinder" in OPTIONAL:
        catalogue.append(("block-storage", "cinder", url("cinder", "/v3")))
    if "heat" in OPTIONAL:
        catalogue.append(("orchestration", "heat", url("heat", "/v1/%(project_id)s")))
    known = s.call("GET", f"{v3}/endpoints")["endpoints"]
    for kind, name, address in catalogue:
        found = s.call("GET", f"{v3}/services?type={kind}")["services"]
        sid = (
            found[0]["id"]
            if found
            else s.call("POST", f"{v3}/services", {"service": {"type": kind, "name": name}})["service"]["id"]
        )
        for interface in ("public", "internal", "admin"):
            for e in known:
                if (e["service_id"], e["interface"]) == (sid, interface):
                    if e["url"] != address:
                        s.call("PATCH", f"{v3}/endpoints/{e['id']}", {"endpoint": {"url": address}})
                    break
            else:
                s.call(
                    "POST",
                    f"{v3}/endpoints",
                    {"endpoint": {"service_id": sid, "interface": interface, "url": address, "region_id": REGION}},
                )

    if "heat" in OPTIONAL:
        found = s.call("GET", f"{v3}/domains?name=heat")["domains"]
        domain = (
            found[0]["id"] if found else s.call("POST", f"{v3}/domains", {"domain": {"name": "heat"}})["domain"]["id"]
        )
        found = s.call("GET", f"{v3}/users?name=heat_domain_admin&domain_id={domain}")["users"]
        user = (
            found[0]["id"]
            if found
            else s.call(
                "POST",
                f"{v3}/users",
                {"user": {"name": "heat_domain_admin", "domain_id": domain, "password": PASSWORD}},
            )["user"]["id"]
        )
        s.call("PUT", f"{v3}/domains/{domain}/users/{user}/roles/{roles['admin']}")


def bootstrap_resources(s):
    """An image, flavors, an external network and a network for the demos."""
    v2 = url("neutron", "/v2.0")
    compute = url("nova", "/v2.1")

    images = s.call("GET", url("glance", "/v2/images?name=tiny"))["images"]
    if not any(i["status"] == "active" for i in images):
        image = s.call(
            "POST",
            url("glance", "/v2/images"),
            {
                "name": "tiny",
                "disk_format": "raw",
                "container_format": "bare",
                "visibility": "public",
                "min_disk": 0,
                "min_ram": 0,
            },
        )
        s.call(
            "PUT",
            url("glance", f"/v2/images/{image['id']}/file"),
            headers={"Content-Type": "application/octet-stream"},
            raw=b"\0" * 65536,
        )

    have = {f["name"] for f in s.call("GET", f"{compute}/flavors")["flavors"]}
    for name, cpus, memory, disk in (("tiny", 1, 512, 1), ("small", 2, 2048, 10), ("large", 8, 16384, 80)):
        if name not in have:
            s.call("POST", f"{compute}/flavors", {"flavor": {"name": name, "vcpus": cpus, "ram": memory, "disk": disk}})

    def network(name, cidr, gateway, pools=None, **more):
        found = s.call("GET", f"{v2}/networks?name={name}")["networks"]
        if not found:
            found = [s.call("POST", f"{v2}/networks", {"network": dict({"name": name}, **more)})["network"]]
        net = found[0]
        if not net.get("subnets"):
            subnet = {
                "network_id": net["id"],
                "ip_version": 4,
                "cidr": cidr,
                "name": f"{name}-subnet",
                "enable_dhcp": False,
                "gateway_ip": gateway,
                **({"allocation_pools": pools} if pools else {}),
            }
            return net["id"], s.call("POST", f"{v2}/subnets", {"subnet": subnet})["subnet"]["id"]
        if pools:
            s.call("PUT", f"{v2}/subnets/{net['subnets'][0]}", {"subnet": {"allocation_pools": pools}})
        return net["id"], net["subnets"][0]

    external, _ = network(
        "public",
        "172.24.4.0/24",
        "172.24.4.1",
        # The rest, from .2 to .127, is left to a service that gives out addresses itself.
        pools=[{"start": "172.24.4.128", "end": "172.24.4.254"}],
        **{"router:external": True, "provider:network_type": "flat", "provider:physical_network": "external"},
    )
    _, inside = network("private", "10.0.0.0/20", "10.0.0.1", shared=True)
    routers = s.call("GET", f"{v2}/routers?name=router")["routers"]
    if not routers:
        router = s.call(
            "POST", f"{v2}/routers", {"router": {"name": "router", "external_gateway_info": {"network_id": external}}}
        )["router"]
        s.call("PUT", f"{v2}/routers/{router['id']}/add_router_interface", {"subnet_id": inside})

    if "cinder" in OPTIONAL:
        project = s.call("GET", url("keystone", "/v3/projects?name=admin"))["projects"][0]["id"]
        volume = url("cinder", f"/v3/{project}/types")
        types = s.call("GET", volume)["volume_types"]
        if not any(t["name"] == "fake" for t in types):
            s.call("POST", volume, {"volume_type": {"name": "fake", "extra_specs": {"volume_backend_name": "fake"}}})


def write_credentials():
    def variables(user, project):
        return {
            "OS_AUTH_TYPE": "password",
            "OS_AUTH_URL": url("keystone", "/v3"),
            "OS_USERNAME": user,
            "OS_PASSWORD": PASSWORD,
            "OS_PROJECT_NAME": project,
            "OS_USER_DOMAIN_NAME": "Default",
            "OS_PROJECT_DOMAIN_NAME": "Default",
            "OS_REGION_NAME": REGION,
            "OS_IDENTITY_API_VERSION": "3",
        }

    clouds = []
    for name, project in [("admin", "admin"), ("blazar", "service"), *((d, d) for d in DEMO)]:
        text = "".join(f"export {k}={shlex.quote(v)}\n" for k, v in variables(name, project).items())
        text += f'export PATH={shlex.quote(str(BIN))}:"$PATH"\n'
        path = HOME / ("openrc" if name == "admin" else f"openrc-{name}")
        path.write_text(text)
        path.chmod(0o600)
        clouds.append(f"""  {name}:
    region_name: {REGION}
    identity_api_version: "3"
    auth:
      auth_url: {url("keystone", "/v3")}
      username: {name}
      password: {json.dumps(PASSWORD)}
      project_name: {project}
      user_domain_name: Default
      project_domain_name: Default
""")
    path = HOME / "clouds.yaml"
    path.write_text("clouds:\n" + "".join(clouds))
    path.chmod(0o600)


def ready(s):
    found = s.call("GET", url("nova", "/v2.1/os-hypervisors/detail"), headers={"OpenStack-API-Version": "compute 2.53"})
    up = {h["service"]["host"] for h in found["hypervisors"] if h["state"] == "up"}
    return set(hosts()) <= up


def up(options):
    if options.fresh:
        down(argparse.Namespace(wipe=True, names=[]))
    for folder in (
        HOME,
        ETC,
        VAR,
        LOG,
        RUN,
        VAR / "locks",
        VAR / "nova",
        VAR / "neutron/locks",
        VAR / "cinder/locks",
        VAR / "glance/images",
        VAR / "glance/staging",
        VAR / "glance/tasks",
        VAR / "keystone",
    ):
        folder.mkdir(parents=True, exist_ok=True)
    RESTART.update(options.restart or [])
    install_packages()
    install_python()
    recall()
    mark = VAR / "settings"
    settings = json.dumps([OFFSET, PASSWORD])
    if mark.exists() and mark.read_text() != settings:
        raise Failure('the data was made with another password or other ports; "up --fresh" starts over')
    mark.write_text(settings)
    # A copy, so that nothing is written beside the original.
    shutil.copytree(LIB / "fakes", HOME / "fakes", dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    configure()
    write_credentials()
    taken = [
        n for n, p in PORTS.items() if listening(p) and not any(alive(r) for r in (n, f"{n}-api", n.split("-")[0]))
    ]
    if taken:
        raise Failure(
            "ports in use by something else: "
            + ", ".join(f"{PORTS[n]} ({n})" for n in taken)
            + "; set OPENSTACK_CLOUD_PORT_OFFSET"
        )

    stop_stale()
    say("starting MariaDB, RabbitMQ, memcached")
    start_mariadb()
    start_memcached()
    start_rabbitmq()
    wait("MariaDB", lambda: listening(PORTS["mariadb"]), 120, ["mariadb"])
    sync_databases()
    say("starting Keystone, Placement, Glance")
    start_keystone()
    start_early()
    s = Session()
    wait("Keystone", lambda: s.login(), 120, ["keystone"])
    # Before the services that read the catalogue, as they keep it.
    mark = VAR / "bootstrapped"
    wanted = json.dumps([PORTS, OPTIONAL, SERVICE_USERS, INHERITING])
    first = not mark.exists() or mark.read_text() != wanted
    if first:
        say("creating users and the catalogue")
        bootstrap_identity(s)
        s.login()
    wait("RabbitMQ", lambda: listening(PORTS["rabbitmq"]), 120, ["rabbitmq"])
    say("starting Neutron, Nova")
    start_late(True)
    running = ["keystone", "placement", "glance", "neutron", "nova-api", "nova-conductor", "nova-scheduler"]
    for name in ("nova-api", "neutron", "placement", "glance"):
        wait(name, lambda name=name: listening(PORTS[name.split("-")[0]]), 240, running)
    say("starting the compute hosts " + " and ".join(OPTIONAL))
    start_late(False)
    running += hosts()
    for name in OPTIONAL:
        running.append(f"{name}-api")
        wait(name, lambda name=name: listening(PORTS[name]), 240, running)
    if first:
        say("creating the image, flavors and networks")
        bootstrap_resources(s)
        mark.write_text(wanted)
    say("waiting for the compute hosts and the message queues")
    wait("compute hosts", lambda: ready(s), 240, running)
    queues = ["conductor", "scheduler", "scheduler_fanout/"]
    queues += [f"compute.{name}" for name in hosts()]
    if "cinder" in OPTIONAL:
        queues += ["cinder-scheduler", "cinder-volume.controller@fake"]
    if "heat" in OPTIONAL:
        queues += ["engine"]
    run([BIN / "python", LIB / "bus.py", PORTS["rabbitmq"], PASSWORD, 120, *queues], "bus")
    say(f"ready: {url('keystone', '/v3')}; source {HOME}/openrc")


def names():
    found = []
    for path in RUN.glob("*.json"):
        item = record(path.stem)
        if item:
            found.append((item["order"], path.stem))
    return [name for _, name in sorted(found)]


def down(options):
    every = names()
    unknown = set(options.names) - set(every)
    if unknown:
        raise Failure("not running: " + ", ".join(sorted(unknown)))
    if options.names:
        stop(options.names)
        return
    base = [n for n in ("memcached", "rabbitmq", "mariadb") if n in every]
    # Data that is to be forgotten needs no orderly end.
    hurry = options.wipe
    stop([n for n in every if n not in base and n != "epmd"], 0 if hurry else 25)
    stop(base, 0 if hurry else 60)
    stop([n for n in every if n == "epmd"])
    if options.wipe:
        shutil.rmtree(VAR, ignore_errors=True)
        shutil.rmtree(LOG, ignore_errors=True)


def family(pid):
    """A process and all that came of it."""
    children = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    todo, found = [pid], []
    while todo:
        found.append(todo.pop())
        todo += children.get(found[-1], [])
    return found


def memory(pid):
    """Resident and proportional set size, in MiB."""
    rss = pss = 0
    try:
        for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Rss:"):
                rss = int(line.split()[1])
            elif line.startswith("Pss:"):
                pss = int(line.split()[1])
    except OSError:
        pass
    return rss / 1024, pss / 1024


def status(options):
    totals = [0, 0]
    bad = 0
    for name in names():
        item = record(name)
        if not alive(name):
            print(f"{name:18} stopped")
            bad += 1
            continue
        sizes = [memory(p) for p in family(item["pid"])]
        rss, pss = (sum(s[i] for s in sizes) for i in (0, 1))
        totals = [totals[0] + rss, totals[1] + pss]
        print(f"{name:18} pid {item['pid']:<8} {len(sizes):2} processes RSS {rss:6.0f} MiB  PSS {pss:6.0f} MiB")
    if not names():
        print("nothing runs")
        return 3
    print(f"{'total':45} RSS {totals[0]:6.0f} MiB  PSS {totals[1]:6.0f} MiB")
    return 1 if bad else 0


def check(options):
    env = environment(OS_CLIENT_CONFIG_FILE=HOME / "clouds.yaml", CLOUD_OPTIONAL=",".join(OPTIONAL))
    return subprocess.call([str(BIN / "python"), str(LIB / "check.py")], env=env)


def main():
    parser = argparse.ArgumentParser(prog="openstack-cloud", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    p = commands.add_parser("up", help="install, start and wait until ready")
    p.add_argument("--fresh", action="store_true", help="first stop it and forget all its data")
    p.add_argument(
        "--restart", metavar="NAME", action="append", help="restart this process, for instance nova-scheduler"
    )
    p = commands.add_parser("down", help='stop what "up" started')
    p.add_argument("names", nargs="*", metavar="NAME", help="only these, for instance compute-2")
    p.add_argument("--wipe", action="store_true", help="forget all data; the installed programs stay")
    commands.add_parser("status", help="what runs, and its memory")
    commands.add_parser("check", help="a smoke test")
    options = parser.parse_args()
    try:
        return globals()[options.command](options)
    except Failure as e:
        print(f"error: {e}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
