# SPDX-License-Identifier: Apache-2.0
"""``blazar.conf`` as operators have it: what takes effect, what is told, what cannot be."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from oslo_config import cfg

from blazar.calendar.placement import Strategy
from blazar.clouds.openstack.options import auth_url, credentials
from blazar.clouds.simulated import MemoryStorage, State
from blazar.cmd import assemble, config, logs
from blazar.cmd.config import ConfigurationError
from blazar.messaging import transport
from blazar.model.base.errors import BlazarError, InvalidInput
from blazar.model.base.paging import ApiBounds, PageBounds
from blazar.model.base.service_info import ReadBounds
from blazar.model.leases.limits import Bounds
from blazar.model.use.policy import UseMode, UsePolicies, UsePolicy
from blazar.resources.contract.actions import action_of
from blazar.resources.contract.values import Action, Given
from blazar.resources.hosts.options import HostSettings
from blazar.resources.instances.virtual import VirtualInstance
from blazarconformance.clock import ManualClock
from tests.people import PeopledCloud

OPERATORS = """
[DEFAULT]
host = 192.0.2.7
port = 4321
log_exchange = true
enable_v1_api = true
auth_strategy = keystone
cleaning_time = 7
os_auth_protocol = https
os_auth_host = keystone.example
os_auth_port = 443
os_auth_prefix = identity
os_auth_version = v3
os_admin_username = reserver
os_admin_password = pa$$word
os_admin_project_name = service
os_admin_user_domain_name = Users
os_admin_project_domain_name = Projects
identity_service = identity-two
os_region_name = RegionTwo
endpoint_type = public
keystone_client_version = 3
db_driver = blazar.db
transport_url = fake://
[api]
api_v2_controllers = oshosts,leases
[manager]
plugins = physical.host.plugin
rpc_topic = blazar.other
minutes_before_end_lease = 30
event_max_retries = 5
[enforcement]
enabled_filters = MaxLeaseDurationFilter,ExternalServiceFilter
max_lease_duration = 604800
max_lease_duration_exempt_project_ids = 71bb6d9e0f2b4c5d8e1a2b3c4d5e6f70
external_service_base_endpoint = https://budgets.example/blazar/
external_service_check_create_endpoint = https://budgets.example/other/check-create
external_service_check_update_endpoint = https://budgets.example/other/check-update
external_service_on_end_endpoint = https://budgets.example/other/on-end
external_service_token = secret
[notifications]
publisher_id = blazar.other
[nova]
endpoint_type = public
nova_client_version = 2.37
compute_service = compute-two
image_prefix = kept_
aggregate_freepool_name = pool
project_id_key = further
blazar_owner = owner
az_aware = false
[neutron]
endpoint_type = public
[placement]
endpoint_type = admin
[physical:host]
blazar_az_prefix = zone_
before_end = snapshot
enable_notification_monitor = true
notification_topics = notifications
enable_polling_monitor = true
polling_interval = 30
healing_interval = 10
randomize_host_selection = true
[database]
connection = mysql+pymysql://blazar:secret@db.example/blazar
[keystone_authtoken]
auth_type = password
service_type = reservation
[oslo_policy]
policy_file = rules.yaml
[oslo_concurrency]
lock_path = /var/lib/blazar
[oslo_messaging_notifications]
driver = noop
[oslo_messaging_rabbit]
heartbeat_timeout_threshold = 60
[oslo_middleware]
enable_proxy_headers_parsing = true
[cors]
allowed_origin = https://horizon.example
"""


def test_the_file_of_an_existing_blazar_is_read_and_nothing_in_it_is_unknown(load):
    conf = load(OPERATORS)
    assert config.leftovers(conf) == []
    assert (conf.host, conf.port, conf.log_exchange) == ("192.0.2.7", 4321, True)
    assert (conf.manager.plugins, conf.manager.rpc_topic) == (["physical.host.plugin"], "blazar.other")
    assert conf.notifications.publisher_id == "blazar.other"
    assert conf.database.connection == "mysql+pymysql://blazar:secret@db.example/blazar"


def test_its_settings_are_those_of_the_manager(load):
    conf = load(OPERATORS)
    settings = config.manager_settings(conf)
    assert config.cleaning_time(conf) == timedelta(minutes=7)
    assert settings.before_end_lead == timedelta(minutes=30)
    assert settings.strategy is Strategy.RANDOM


def test_extra_specs_are_allowed_as_configured(load):
    assert "hw:cpu_policy" in HostSettings.configured(load("[nova]")).extra_specs
    settings = HostSettings.configured(load("[nova]", "allowed_extra_specs = hw:*, quota:cpu_shares"))
    assert settings.extra_specs == ("hw:*", "quota:cpu_shares")
    kind = VirtualInstance(PeopledCloud(MemoryStorage(State()), clock=ManualClock()).cloud, settings)
    asked = {"amount": 1, "vcpus": 1, "memory_mb": 1, "disk_gb": 1, "affinity": None, "resource_properties": ""}
    for name in ("hw:numa_nodes", "quota:cpu_shares"):
        assert kind.parameters(Given({**asked, "extra_specs": {name: "1"}})).values["extra_specs"] == {name: "1"}
    with pytest.raises(InvalidInput, match="quota:cpu_period is not allowed here; use hw:"):
        kind.parameters(Given({**asked, "extra_specs": {"quota:cpu_period": "1"}}))


def test_its_names_are_those_that_are_used_in_the_cloud(load):
    settings = HostSettings.configured(load(OPERATORS))
    assert (settings.aggregates.freepool, settings.aggregates.owner_key, settings.aggregates.zone_prefix) == (
        "pool",
        "owner",
        "zone_",
    )
    assert (settings.image_prefix, settings.before_end) == ("kept_", "snapshot")


def test_its_service_user_is_the_one_that_logs_in(load):
    given = credentials(load(OPERATORS))
    (method,) = given.auth.auth_methods
    assert given.auth.auth_url == "https://keystone.example:443/identity/v3"
    assert (method.username, method.password, method.user_domain_name) == ("reserver", "pa$word", "Users")
    assert (given.auth.project_name, given.auth.project_domain_name) == ("service", "Projects")


def test_its_region_and_endpoints_are_those_that_are_called(load):
    given = credentials(load(OPERATORS))
    assert given.region == "RegionTwo"
    assert (given.compute_service, given.identity_service) == ("compute-two", "identity-two")
    assert {name: given.interfaces[name] for name in ("compute", "placement", "network", "identity")} == {
        "compute": "public",
        "placement": "admin",
        "network": "public",
        "identity": "public",
    }


def test_without_a_file_everything_is_as_operators_know_it(load):
    conf = load()
    assert (conf.host, conf.port, conf.cleaning_time) == ("0.0.0.0", 1234, 0)
    assert (conf.manager.rpc_topic, conf.manager.minutes_before_end_lease) == ("blazar.manager", 60)
    assert (conf.nova.aggregate_freepool_name, conf.nova.image_prefix) == ("freepool", "reserved_")
    assert auth_url(conf) == "http://127.0.0.1:5000/v3"


@pytest.mark.parametrize(
    ("lines", "url"),
    [
        (["os_auth_host = fd00::1"], "http://[fd00::1]:5000/v3"),
        (["os_auth_port ="], "http://127.0.0.1/v3"),
        (["os_auth_version = v4"], "http://127.0.0.1:5000/v4"),
        (["os_auth_prefix = /identity/"], "http://127.0.0.1:5000/identity/v3"),
    ],
)
def test_the_url_of_keystone_is_put_together(load, lines, url):
    assert auth_url(load("[DEFAULT]", *lines)) == url


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("section", "option", "group"),
    [
        ("DEFAULT", "image_prefix", "nova"),
        ("DEFAULT", "compute_service", "nova"),
        ("physical:host", "aggregate_freepool_name", "nova"),
        ("physical:host", "blazar_owner", "nova"),
        ("physical:host", "project_id_key", "nova"),
    ],
)
def test_an_option_counts_where_it_once_was(load, section, option, group):
    conf = load(f"[{section}]", f"{option} = moved")
    assert conf[group][option] == "moved"
    assert config.leftovers(conf) == []


def test_an_older_name_of_an_option_counts(load):
    assert HostSettings.configured(load("[physical:host]", "before_end_action = snapshot")).before_end == "snapshot"


def test_what_nothing_reads_is_listed(load):
    conf = load(
        "[DEFAULT]",
        "cleaning_tim = 5",
        "cleaning_time = 5",
        "[enforcement]",
        "max_lease_durations = 9",
        "[typo]",
        "a = 1",
    )
    assert config.leftovers(conf) == ["[DEFAULT] cleaning_tim", "[enforcement] max_lease_durations", "[typo] a"]


def test_a_folder_of_further_files_counts_and_is_looked_through(tmp_path):
    (tmp_path / "10-first.conf").write_text("[DEFAULT]\ncleaning_time = 1\nwrong = 1\n", encoding="utf-8")
    (tmp_path / "20-then.conf").write_text("[DEFAULT]\ncleaning_time = 2\n", encoding="utf-8")
    conf = config.load(["--config-dir", str(tmp_path)], program="blazar-test")
    assert conf.cleaning_time == 2
    assert config.leftovers(conf) == ["[DEFAULT] wrong"]


def test_options_of_another_section_that_is_used_to_log_in_are_read(load):
    lines = [
        "[keystone]",
        "auth_section = vault",
        "[vault]",
        "auth_type = v3token",
        "auth_url = http://k/v3",
        "token = t",
    ]
    conf = load(*lines)
    assert credentials(conf).auth.auth_url == "http://k/v3"
    assert config.leftovers(conf) == []


def test_a_section_of_ones_own_for_keystone_outranks_the_old_options(load):
    lines = ["auth_type = v3password", "auth_url = http://k/v3", "username = other", "user_domain_name = Users"]
    (method,) = credentials(load("[keystone]", *lines)).auth.auth_methods
    assert method.username == "other"


def test_a_wsgi_server_gets_the_file_of_the_folder_that_it_names(monkeypatch, tmp_path):
    monkeypatch.delenv("OS_BLAZAR_CONFIG_DIR", raising=False)
    assert config.default_files() is None
    monkeypatch.setenv("OS_BLAZAR_CONFIG_DIR", str(tmp_path))
    assert config.default_files() == [str(tmp_path / "blazar.conf")]


A100 = '{"name": "a100", "vendor_id": "10de", "product_id": "20b5"}'
L4 = '{"name": "l4", "resource_class": "CUSTOM_L4"}'


def test_pci_aliases_are_those_of_the_file(load):
    assert not HostSettings.configured(load("[nova]")).pci.specs
    found = HostSettings.configured(load("[nova]", f"pci_alias = {A100}", f"pci_alias = {L4}")).pci
    assert {name: spec.resource_class for name, (spec,) in found.specs.items()} == {
        "a100": "CUSTOM_PCI_10DE_20B5",
        "l4": "CUSTOM_L4",
    }


def test_pci_aliases_of_nova_go_before_ours(load):
    assert not HostSettings.configured(load("[pci]")).pci.specs
    found = HostSettings.configured(load("[nova]", f"pci_alias = {A100}", "[pci]", f"alias = {L4}")).pci
    assert found.specs.keys() == {"l4"}


def test_pci_devices_are_in_placement_if_the_file_says_so(load):
    assert HostSettings.configured(load("[nova]", f"pci_alias = {L4}")).pci.in_placement
    assert not HostSettings.configured(load("[nova]", "pci_in_placement = false")).pci.in_placement
    with pytest.raises(InvalidInput, match="PCI alias l4 needs vendor_id and product_id, as pci_in_placement is false"):
        HostSettings.configured(load("[nova]", f"pci_alias = {L4}", "pci_in_placement = false"))


def test_models_of_gpus_are_those_of_the_file(load):
    assert not HostSettings.configured(load("[nova]")).gpus.sources
    models = "gpu_models = A100:alias/a100,A16-4Q:class/VGPU"
    found = HostSettings.configured(load("[nova]", f"pci_alias = {A100}", models)).gpus
    assert found.sources == {"A100": ("alias", "a100"), "A16-4Q": ("class", "VGPU")}
    with pytest.raises(InvalidInput, match="gpu_models: .A100. is the alias .a100., which is not in .nova. pci_alias"):
        HostSettings.configured(load("[nova]", models))


WRONG = [
    ("[DEFAULT]", "cleaning_time = -1", "a whole number from 0"),
    ("[DEFAULT]", "cleaning_time = 1.5", "a whole number from 0"),
    ("[DEFAULT]", "cleaning_time = 99999999999999", "too large"),
    ("[DEFAULT]", "port = 99999", "max=65535"),
    ("[DEFAULT]", "host = no_host!", "HostAddress"),
    ("[DEFAULT]", "log_exchange = maybe", "Boolean"),
    ("[DEFAULT]", "debug = maybe", "Boolean"),
    ("[DEFAULT]", "os_auth_protocol = ftp", "one of http, https"),
    ("[DEFAULT]", "os_auth_host = a b", "the name or the address of a host"),
    ("[DEFAULT]", "endpoint_type = publicURL", "one of public, internal, admin"),
    ("[nova]", "endpoint_type = secret", "one of public, internal, admin"),
    ("[nova]", "az_aware = x", "true or false"),
    ("[nova]", "pci_alias = a100", "is JSON as in nova.conf"),
    ("[nova]", "pci_in_placement = partly", "true or false"),
    ("[nova]", "gpu_models = A100", "A100"),
    ("[pci]", 'alias = {"name": "a:b"}', "give 1 to 255 characters without : and ,"),
    ("[placement]", "endpoint_type = secret", "one of public, internal, admin"),
    ("[manager]", "event_max_retries = 51", "a whole number from 0 to 50"),
    ("[manager]", "minutes_before_end_lease = -1", "a whole number from 0"),
    ("[manager]", "claim_ttl = 0", "a whole number from 1"),
    ("[cloud]", "timeout = 0", "a number from 0.1"),
    ("[cloud]", "timeout = inf", "too large"),
    ("[api]", "threads = none", "a whole number from 1"),
    ("[api]", "api_v2_controllers = leases,networks", "any of oshosts, leases"),
    ("[api]", "page_size = 0", "a whole number from 1 to 5000"),
    ("[api]", "max_page_size = 5001", "a whole number from 1 to 5000"),
    ("[api]", "range_back_members = -1", "a whole number from 0"),
    ("[api]", "feeds_per_user = many", "a whole number from 0"),
    ("[api]", "project_weights = physics:0", "names with numbers from 0.01 to 1000"),
    ("[api]", "project_weights = physics", "names with numbers from 0.01 to 1000"),
    ("[availability]", "max_openings = 0", "a whole number from 1 to 5000"),
    ("[physical:host]", "before_end = explode", "snapshot"),
    ("[physical:host]", "polling_interval = 0", "a whole number from 1"),
    ("[keystone]", "insecure = perhaps", "true or false"),
    ("[power]", "mode = always", "one of off, dry_run, on"),
    ("[power]", "ramp = 0", "a whole number from 1"),
    ("[enforcement]", "max_lease_duration = a week", "a whole number from -1"),
    ("[enforcement]", "max_units = -2", "a whole number from -1"),
    ("[enforcement]", "notice_attempts = 0", "a whole number from 1 to 1000"),
    ("[enforcement]", "external_service_timeout = 0", "a number from 0.1"),
    ("[enforcement]", "external_service_attempts = 11", "a whole number from 1 to 10"),
    ("[enforcement]", "external_service_on_error = maybe", "one of deny, allow"),
]


@pytest.mark.sample(5)
@pytest.mark.parametrize(("section", "line", "remedy"), WRONG, ids=[f"{s} {line}" for s, line, _ in WRONG])
def test_a_wrong_value_is_refused_with_its_option_and_what_would_do(load, section, line, remedy):
    option, _, value = line.partition(" = ")
    with pytest.raises(ConfigurationError) as refused:
        load(section, line)
    message = refused.value.message
    assert message.startswith(f"{section} {option}")
    assert remedy in message
    assert "\n" not in message
    assert value in message


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("section", "option"),
    [
        ("[DEFAULT]", "cleaning_time"),
        ("[DEFAULT]", "port"),
        ("[manager]", "rpc_topic"),
        ("[nova]", "aggregate_freepool_name"),
        ("[nova]", "blazar_owner"),
    ],
)
def test_what_cannot_be_empty_is_not(load, section, option):
    with pytest.raises(ConfigurationError, match="is empty") as refused:
        load(section, f"{option} =")
    assert f"{section} {option}" in refused.value.message


@pytest.mark.sample(1)
@pytest.mark.parametrize("value", ["many", "10 # connections", "", "10s", "0x10", "1.5"])
def test_a_word_where_a_number_belongs_is_called_one(load, value):
    with pytest.raises(ConfigurationError) as refused:
        load("[database]", f"max_pool_size = {value}")
    assert refused.value.message in (
        f"[database] max_pool_size cannot be {value!r}: it is no whole number; give a whole number from 1",
        "[database] max_pool_size is empty; give a whole number from 1, or remove the line",
    )


def test_the_reason_is_one_sentence_for_operators(load):
    with pytest.raises(ConfigurationError) as refused:
        load("[manager]", "claim_ttl = 0")
    assert refused.value.message == (
        "[manager] claim_ttl cannot be '0': Should be greater than or equal to 1; give a whole number from 1"
    )


@pytest.mark.parametrize(
    ("section", "line"),
    [
        ("[DEFAULT]", "os_admin_password = se$cret"),
        ("[database]", "connection = mysql+pymysql://u:se$cret@db/blazar"),
    ],
)
def test_a_dollar_sign_in_a_secret_is_explained_and_the_secret_is_not_told(load, section, line):
    with pytest.raises(ConfigurationError, match=r"write '\$\$'") as refused:
        load(section, line)
    assert f"{section} {line.partition(' ')[0]}" in refused.value.message
    assert "cret" not in refused.value.message


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["[DEFAULT]", "os_auth_port = abc"], "[DEFAULT] os_auth_port is 'abc'"),
        (["[DEFAULT]", "cafile = /no/such.pem"], "[DEFAULT] cafile is /no/such.pem"),
        (["[keystone]", "cafile = /no/such.pem"], "[keystone] cafile is /no/such.pem"),
        (["[keystone]", "auth_type = nonsense"], "[keystone] does not say how to log in"),
        (["[keystone]", "auth_type = password"], "auth_url"),
        (["[keystone]", "auth_type = v3password", "auth_url = http://k", "password = a$b"], "write '$$'"),
        (["[keystone]", "auth_section = nowhere"], "[nowhere] names no auth_type"),
    ],
    ids=str,
)
def test_a_login_that_cannot_be_is_refused(load, lines, words):
    conf = load(*lines)
    with pytest.raises(InvalidInput) as refused:
        credentials(conf)
    assert words in refused.value.message


@pytest.mark.sample(1)
@pytest.mark.parametrize("url", ["nonsense://secret@h/", "secret", "rabbit://guest:secret@h:port/"])
def test_a_message_bus_that_cannot_be_is_refused_without_its_password(load, url):
    with pytest.raises(InvalidInput, match="transport_url") as refused:
        transport(load("[DEFAULT]", f"transport_url = {url}"))
    assert "secret" not in refused.value.message


@pytest.mark.parametrize(
    ("plugins", "words"),
    [
        (
            "dummy.vm.plugin",
            "installed are: device.plugin, flavor.instance.plugin, generic.plugin, network.plugin, ",
        ),
        ("physical.host.plugin,physical.host.plugin", "more than one plugin for physical:host"),
    ],
)
def test_plugins_that_cannot_be_are_refused(load, plugins, words):
    with pytest.raises(ConfigurationError, match=words):
        assemble.check_plugins(load("[manager]", f"plugins = {plugins}"))


@pytest.mark.parametrize("text", ["no assignment", "[DEFAULT", b"\xff\xfe = 1"], ids=repr)
def test_a_file_that_is_none_is_named(tmp_path, text):
    path = tmp_path / "blazar.conf"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises((BlazarError, cfg.Error)):
        config.load(["--config-file", str(path)], program="blazar-test")


WINDOWS = {
    "BOM": ("utf-8-sig", "begins with a byte order mark (BOM), as editors on Windows add it; save it as UTF-8 without"),
    "UTF-16": ("utf-16", "is in UTF-16, as editors on Windows save it; save it as UTF-8 without BOM"),
    "Latin 1": ("latin-1", "is not in UTF-8, see line 2; save it as UTF-8"),
}


@pytest.mark.sample(11)
@pytest.mark.parametrize(("encoding", "words"), WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("option", ["--config-file", "--config-dir", "by default"])
@pytest.mark.parametrize("first", ["[DEFAULT]", "# Settings", ""])
def test_a_file_that_an_editor_on_windows_saved_is_named_with_what_to_do(tmp_path, encoding, words, option, first):
    path = tmp_path / "blazar.conf"
    path.write_bytes(f"{first}\n# Plätze\n[DEFAULT]\nhost = 127.0.0.1\n".encode(encoding))
    named = {"--config-file": [option, str(path)], "--config-dir": [option, str(tmp_path)]}.get(option, [])
    with pytest.raises(ConfigurationError) as refused:
        config.load(named, program="blazar-test", files=None if named else [str(path)])
    assert f"{path} {words}" in refused.value.message


@pytest.mark.sample(2)
@pytest.mark.parametrize(("encoding", "words"), WINDOWS.values(), ids=WINDOWS)
def test_a_file_of_the_log_that_an_editor_on_windows_saved_is_named_with_what_to_do(load, tmp_path, encoding, words):
    path = tmp_path / "logging.conf"
    path.write_bytes("[loggers]\n# Plätze\nkeys = root\n".encode(encoding))
    with pytest.raises(ConfigurationError) as refused:
        logs.start(load("[DEFAULT]", f"log_config_append = {path}"))
    assert f"{path} {words}" in refused.value.message


def test_a_file_that_gets_a_mark_later_is_named_and_changes_nothing(load, tmp_path, caplog):
    conf = load("[DEFAULT]", "debug = false")
    (tmp_path / "blazar.conf").write_text("[DEFAULT]\ndebug = true\n", encoding="utf-8-sig")
    config.read_again(conf)
    assert "stays unchanged" in caplog.text
    assert f"{tmp_path / 'blazar.conf'} begins with a byte order mark" in caplog.text
    assert not conf.debug


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot be read"):
        config.load(["--config-file", str(tmp_path)], program="blazar-test")


def test_a_log_that_cannot_be_written_is_told(load):
    with pytest.raises(ConfigurationError, match="log_config_append"):
        logs.start(load("[DEFAULT]", "log_config_append = /no/such/file"))


@pytest.mark.sample(1)
@pytest.mark.parametrize("word", ["default", "email", ""])
def test_the_words_of_older_files_for_a_warning_alone_start_and_warn(load, word):
    settings = HostSettings.configured(load("[physical:host]", f"before_end = {word}"))
    assert action_of("default", settings.before_end) is Action.NOTIFICATION
    assert action_of("snapshot", settings.before_end) is Action.SNAPSHOT


def test_the_warning_of_whole_hosts_may_come_by_hours_of_its_own(load):
    minutes = ["[manager]", "minutes_before_end_lease = 30"]
    settings = config.manager_settings(load(*minutes))
    assert settings.lead_before_end(["physical:host"]) == timedelta(minutes=30)
    settings = config.manager_settings(load(*minutes, "[physical:host]", "hours_before_end_lease = 48"))
    assert settings.lead_before_end(["physical:host"]) == timedelta(hours=48)
    assert settings.lead_before_end(["virtual:instance"]) == timedelta(minutes=30)
    # Who has several kinds of things needs the earliest of the warnings.
    assert settings.lead_before_end(["virtual:instance", "physical:host"]) == timedelta(hours=48)
    assert settings.lead_before_end([]) == timedelta(minutes=30)
    never = config.manager_settings(load(*minutes, "[physical:host]", "hours_before_end_lease = 0"))
    assert never.lead_before_end(["physical:host"]) == timedelta(0)


def test_a_search_for_free_time_has_fifteen_seconds_unless_an_operator_says_otherwise(load):
    assert config.manager_settings(load()).search_limit == timedelta(seconds=15)
    assert config.manager_settings(load("[availability]", "max_seconds = 4")).search_limit == timedelta(seconds=4)


def test_one_project_is_bounded_generously_unless_an_operator_says_otherwise(load):
    assert config.manager_settings(load()).bounds == Bounds(1000, 30, 1000, 20)
    lines = ("leases_per_project = 5", "reservations_per_lease = -1", "reservations_per_project = -1")
    lines += ("lapsed_per_project = -1",)
    assert config.manager_settings(load("[enforcement]", *lines)).bounds == Bounds(leases=5)


@pytest.mark.slow
def test_what_one_request_may_read_is_bounded_unless_an_operator_says_otherwise(load):
    assert (config.api_bounds(load()), config.manager_settings(load()).reads) == (ApiBounds(), ReadBounds())
    lines = ("page_size = 5", "max_page_size = 50", "max_calendar_page_size = 200", "max_range = 30", "range_back = 7")
    lines += ("range_back_members = 1", "range_ahead = 60", "capacity_points = 300", "capacity_groups = 3")
    lines += ("max_properties = 4", "max_property_values = 2", "feeds_per_user = 0")
    chosen = load("[api]", *lines, "[availability]", "openings = 1", "max_openings = 1")
    assert config.api_bounds(chosen) == ApiBounds(
        pages=PageBounds(5, 50), calendar=PageBounds(200, 200), openings=PageBounds(1, 1)
    )
    assert config.manager_settings(chosen).reads == ReadBounds(
        longest_range=timedelta(days=30),
        back=timedelta(days=7),
        back_of_members=timedelta(days=1),
        ahead=timedelta(days=60),
        points=300,
        groups=3,
        properties=4,
        property_values=2,
        feeds_of_user=0,
    )


def test_a_page_is_by_default_no_longer_than_at_most(load):
    with pytest.raises(ConfigurationError) as refused:
        config.api_bounds(load("[api]", "max_page_size = 50"))
    assert refused.value.message == (
        "[api] page_size is 100, more than [api] max_page_size, which is 50; give at most that, or a larger "
        "max_page_size"
    )


@pytest.mark.slow
def test_leases_that_nobody_uses_are_only_reported_unless_an_operator_says_otherwise(load):
    usual = config.manager_settings(load()).use_policies
    assert usual == UsePolicies(UsePolicy(UseMode.DRY_RUN))
    lines = ("mode = on", "idle_after = 86400", "exempt_projects = a,b", "brake_percent = 50")
    policies = (
        "policy = resource_type=network mode=off",
        "policy = resource_type=physical:host project=p unused_after=36000 idle_after=0",
    )
    chosen = config.manager_settings(load("[unused]", *lines, *policies)).use_policies
    on = UsePolicy(UseMode.ON, idle_after=timedelta(days=1))
    assert chosen == UsePolicies(
        on,
        {
            ("network", ""): replace(on, mode=UseMode.OFF),
            ("physical:host", "p"): UsePolicy(UseMode.ON, unused_after=timedelta(hours=10)),
        },
        exempt=frozenset({"a", "b"}),
        brake=0.5,
    )


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("warn_before = 32400", "the options of [unused]: undo must be shorter than warn_before"),
        ("policy = mode=on", "give a resource_type or a project"),
        ("policy = project=p colour=red", "'colour' is none of idle_after, idle_below, mode"),
        ("policy = project=p mode=loud", "mode is 'loud'; give off, dry_run or on"),
        ("policy = project=p undo=1", "undo is '1'; give seconds from 60 to 86400"),
        ("policy = project=p unused_after=3600", "that shorter than unused_after"),
        ("policy = project=p source=guesses", "source is 'guesses'; give states or prometheus"),
        ("policy = project=p source=prometheus idle_below=nan", "idle_below is 'nan'; give a number"),
        ("policy = project=p source=prometheus", "idle_after must be set where source is prometheus"),
        ("policy = project=p source=prometheus idle_after=86400", "prometheus_url is not set"),
    ],
)
def test_policies_of_use_that_cannot_be_are_refused(load, line, words):
    with pytest.raises(ConfigurationError) as refused:
        config.manager_settings(load("[unused]", line))
    assert words in refused.value.message
