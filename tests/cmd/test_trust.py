# SPDX-License-Identifier: Apache-2.0
"""Whom a process trusts: each call with TLS takes the cafile of its section, and then that of ``[DEFAULT]``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from oslo_config import cfg

from blazar.api.http import middleware
from blazar.clouds import prometheus
from blazar.clouds.hooks.http import HttpHooks
from blazar.clouds.mail import SmtpMail
from blazar.clouds.openstack.options import credentials
from blazar.clouds.webhooks import HttpWebhooks
from blazar.cmd import assemble, config, pages

ROOT = Path(__file__).parents[2] / "blazar"
CALLERS = {
    "api/web/keystone.py": "pages._keystone gives it the verification",
    "clouds/outgoing/posting.py": "HttpHooks.configured, HttpWebhooks.configured",
    "clouds/mail.py": "SmtpMail.configured",
    "clouds/openstack/access.py": "credentials",
    "clouds/outgoing/calls.py": "who makes OutgoingCalls says it",
    "clouds/prometheus_server.py": "PrometheusServer.configured, of prometheus.metrics and prometheus_hosts.meters",
    "cmd/logins.py": "verification",
    "enforcement/external.py": "Identity.cafile",
    "api/http/middleware.py": "behind_keystone",
    "enforcement/unified.py": "the library reads [oslo_limit]",
}
"""What opens connections with TLS, and from where it knows whom to trust."""
OPENS = re.compile(
    r"(?<![\w.])(?:requests\.)?Session\(|\bOutgoingCalls\(|create_default_context\(|KeystoneGuard\(|library\.Enforcer\("
)
OWN = ("api/web/cookies.py", "api/web/signing_in.py")
"""Sessions of browsers, not of connections."""


def lines(tmp_path, section: str = "", file: str = "") -> tuple[str, ...]:
    return (
        "[DEFAULT]",
        f"cafile = {tmp_path / 'default.pem'}",
        "os_admin_password = x",
        *(("[keystone_authtoken]", "auth_type = password", "auth_url = https://127.0.0.1:9/v3", "username = blazar")),
        *((f"cafile = {file}",) if section == "keystone_authtoken" else ()),
        *((f"[{section}]", f"cafile = {file}") if section and section != "keystone_authtoken" else ()),
    )


@pytest.fixture
def files(tmp_path):
    for name in ("default.pem", "own.pem"):
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.slow
def test_all_that_opens_connections_with_tls_is_looked_at_here():
    def opens(path: Path) -> bool:
        lines = (line.lstrip() for line in path.read_text(encoding="utf-8").splitlines())
        return any(OPENS.search(line) and not line.startswith(("class ", "#", "def ")) for line in lines)

    found = {str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py") if opens(path)}
    assert found - set(OWN) == CALLERS.keys()


def test_the_services_of_the_cloud_are_trusted_so(load, files):
    assert credentials(load(*lines(files))).verify == str(files / "default.pem")
    own = str(files / "own.pem")
    assert credentials(load(*lines(files, "keystone", own))).verify == own


def _registered(conf: cfg.ConfigOpts) -> cfg.ConfigOpts:
    middleware.behind_keystone(lambda environ, start: [], conf, cafile=conf.cafile)
    return conf


@pytest.mark.parametrize("own", [False, True])
def test_tokens_are_validated_and_users_sign_in_so(load, files, monkeypatch, own):
    given: list[object] = []
    library = middleware.AuthProtocol._create_session

    def remember(self, **named):
        given.append(self._conf.get("cafile"))
        return library(self, **named)

    monkeypatch.setattr(middleware.AuthProtocol, "_create_session", remember)
    file = str(files / ("own.pem" if own else "default.pem"))
    conf = _registered(load(*lines(files, "keystone_authtoken" if own else "", file)))
    assert {*given} == {file}
    assert pages._keystone(conf)._verify == file


def test_an_empty_cafile_of_a_section_is_none(load, files):
    conf = _registered(load(*lines(files, "keystone_authtoken", "")))
    assert pages._keystone(conf)._verify == str(files / "default.pem")


def test_hooks_measurements_and_the_external_service_are_trusted_so(load, files):
    file = str(files / "default.pem")
    conf = load(
        *lines(files),
        *("[generic]", f"master_secrets = {'k' * 43}="),
        *("[unused]", "prometheus_url = https://127.0.0.1:9/"),
        'prometheus_query = cpu{uuid=~"{server_id}"}',
        *("[energy]", "prometheus_url = https://127.0.0.1:9/", 'prometheus_query = watts{node=~"{host}"}'),
        *("carbon_url = https://127.0.0.1:9/", "carbon_networks = 127.0.0.0/8"),
        *("[enforcement]", "enabled_filters = ExternalServiceFilter"),
        "external_service_base_endpoint = https://127.0.0.1:9/",
    )
    assert HttpHooks.configured(conf)._poster._cafile == file
    assert SmtpMail.configured(conf)._cafile == file
    assert {poster._cafile for poster in HttpWebhooks.configured(conf)._posters.values()} == {file}
    assert prometheus.metrics(conf.unused, conf.cafile)._server._calls.verify == file
    assert assemble.meters(conf)._server._calls.verify == file
    assert assemble.carbon(conf)._poster._cafile == file
    (external,) = assemble.enforcement(conf, assemble.CloudIdentity(cafile=conf.cafile)).filters
    assert external._calls.verify == file


def test_keystone_is_trusted_so_for_unified_limits(files, monkeypatch, file):
    from blazar.enforcement import unified

    conf = cfg.ConfigOpts()
    path = file(*lines(files), "[oslo_limit]", "auth_type = none")
    config.load(["--config-file", path], program="blazar-manager", conf=conf)
    monkeypatch.setattr(unified.cfg, "CONF", conf)
    monkeypatch.setattr("oslo_limit.opts.CONF", conf, raising=False)
    monkeypatch.setattr("oslo_limit.limit.Enforcer", lambda *_, **__: conf.oslo_limit.cafile)
    assert unified._log_in(5) == str(files / "default.pem")
