# SPDX-License-Identifier: Apache-2.0
"""Options that files of deployment tools set for the existing Blazar or its libraries, and that have no effect here.

They are listed, so that validators know them, and never registered: a library may have one of its own by that name.
"""

from __future__ import annotations

from oslo_config import cfg

_SERVICE_USER = "The service user is that of [keystone], or of the os_* options of [DEFAULT]."
_MAIL = "No mail is sent; notifications tell other programs (before_end = notification)."
_CONNECTIONS = "A lost connection is noticed, and the work is retried, without a limit of attempts of its own."

_REASONS: dict[str, dict[str, str]] = {
    "DEFAULT": {"api_paste_config": "The parts of the API are not assembled by a file."},
    "database": {
        "retry_interval": "A starting manager looks every 2 seconds; [database] max_retries says how often.",
        "db_max_retries": _CONNECTIONS,
        "db_retry_interval": _CONNECTIONS,
        "db_inc_retry_interval": _CONNECTIONS,
        "db_max_retry_interval": _CONNECTIONS,
        "sqlite_synchronous": "SQLite is always used with synchronous = NORMAL.",
        "backend": "The database is that of [database] connection.",
        "mysql_sql_mode": "MySQL and MariaDB are always used with sql_mode = TRADITIONAL.",
        "mysql_wsrep_sync_wait": "All reads and writes of a process go to one server.",
        "slave_connection": "All reads and writes go to [database] connection.",
        "connection_debug": "Levels of logs are set by [DEFAULT] default_log_levels.",
        "connection_trace": "Levels of logs are set by [DEFAULT] default_log_levels.",
        "connection_parameters": "Parameters are part of [database] connection.",
        "synchronous_reader": "All reads and writes of a process go to one server.",
    },
    "device": {"plugins": "Devices are driven by their hooks; device.plugin of [manager] plugins enables them."},
    "k8s": {"kubeconfig_file": "Devices are driven by their hooks."},
    "network": {"usage_type_plugins": "The usage_type of a segment is a property like any other."},
    "network_storage": {"ceph_nfs_share_type": "No shares are made for networks."},
    "oslo_messaging_rabbit": {"heartbeat_in_pthread": "Heartbeats always run in native threads."},
    "physical:host": {
        "on_start": "What happens at the start depends on the type of the reservation only.",
        "on_end": "What happens at the end depends on the type of the reservation only.",
        "blazar_username": _SERVICE_USER,
        "blazar_password": _SERVICE_USER,
        "blazar_project_name": _SERVICE_USER,
        "email_relay": _MAIL,
    },
    "physical_host_plugin": {
        "aggregate_freepool_name": "The option is in [nova].",
        **dict.fromkeys(
            (
                "blazar_username",
                "blazar_password",
                "blazar_project_name",
                "blazar_user_domain_name",
                "blazar_project_domain_name",
            ),
            _SERVICE_USER,
        ),
        "nova_client_timeout": "The option is [cloud] timeout.",
        "enable_host_reservation": "physical.host.plugin of [manager] plugins enables reservations of hosts.",
    },
    "virtual:floatingip": {"billrate": "What a reservation costs is for the service of [enforcement] to say."},
}

OPTIONS: dict[str, list[cfg.Opt]] = {
    group: [
        cfg.StrOpt(
            name, secret="password" in name, deprecated_for_removal=True, deprecated_reason=reason, help="Not used."
        )
        for name, reason in reasons.items()
    ]
    for group, reasons in _REASONS.items()
}
