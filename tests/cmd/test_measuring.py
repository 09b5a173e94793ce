# SPDX-License-Identifier: Apache-2.0
"""The options of ``[unused]`` for measurements by Prometheus, and what ``blazar-status`` says of it."""

from __future__ import annotations

import socket
from datetime import timedelta

import pytest

from blazar.clouds.ports.compute import NoMetrics
from blazar.clouds.prometheus import Prometheus
from blazar.cmd import assemble, config
from blazar.cmd.config import ConfigurationError
from blazar.cmd.status import main
from blazar.model.use.policy import UseMode, UsePolicy

QUERY = 'prometheus_query = cpu{uuid=~"{server_id}"}'
USUAL = ("[unused]", "source = prometheus", "idle_after = 86400")


def test_by_default_nothing_is_measured(load):
    assert isinstance(assemble.metrics(load()), NoMetrics)
    assert config.manager_settings(load()).use_policies.default.idle_below is None


def test_a_policy_names_its_source_and_its_bound(load):
    policies = ("policy = project=p source=states", "policy = project=q idle_below=0.2")
    conf = load(*USUAL, QUERY, "prometheus_url = https://prometheus:9090/", *policies)
    chosen = config.manager_settings(conf).use_policies
    assert chosen.default == UsePolicy(UseMode.DRY_RUN, idle_after=timedelta(days=1), idle_below=0.05)
    assert [chosen.of("physical:host", project).idle_below for project in "pqr"] == [None, 0.2, 0.05]
    assert isinstance(assemble.metrics(conf), Prometheus)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([QUERY, "prometheus_url = prometheus:9090"], "is not a URL of a service; write it as https://HOST:9090/"),
        ([QUERY, "prometheus_url = https://me:s3cret@prometheus/"], "prometheus_url contains a name or password"),
        (
            [QUERY, "prometheus_url = http://prometheus/", "prometheus_bearer_token = s3cret"],
            "prometheus_bearer_token would be sent to it unencrypted",
        ),
        ([QUERY, "prometheus_url = https://p/", "prometheus_password = s3cret"], "set both, or none"),
        (
            [QUERY, "prometheus_url = https://p/", "prometheus_username = me", "prometheus_bearer_token = s3cret"],
            "only one can be sent; keep one",
        ),
        (["prometheus_url = https://p/", "prometheus_query = up"], "[unused] prometheus_query must have {server_id}"),
    ],
)
def test_options_that_cannot_be_stop_the_process_and_show_no_secret(load, lines, words):
    with pytest.raises(ConfigurationError) as refused:
        assemble.metrics(load(*USUAL, *lines))
    assert words in refused.value.message
    assert "s3cret" not in refused.value.message


@pytest.mark.slow
def test_status_says_when_prometheus_does_not_answer(working, file, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    path = file(*working(), *USUAL, QUERY, f"prometheus_url = http://127.0.0.1:{port}/")
    assert main(["--config-file", path, "upgrade", "check"]) == 1
    (row,) = [row for row in capsys.readouterr().out.splitlines() if row.lstrip("| ").startswith("Prometheus")]
    assert "Prometheus cannot be reached, so no lease with a running server is released" in row
