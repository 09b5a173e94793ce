# SPDX-License-Identifier: Apache-2.0
"""What operators copy names things that exist."""

from __future__ import annotations

import os
import re
import runpy
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize("name", ["api", "manager"])
def test_a_unit_starts_a_command_of_ours_that_stops_before_it_is_killed(name):
    text = (ROOT / f"deploy/systemd/blazar-{name}.service").read_text(encoding="utf-8")
    options = dict(re.findall(r"^(\w+)=(.*)$", text, re.M))
    assert options["ExecStart"].split()[0] == f"/opt/blazar/bin/blazar-{name}"
    assert f"blazar-{name}" in PROJECT["scripts"]
    assert int(options["TimeoutStopSec"]) > 15
    assert (options["Type"], options["NotifyAccess"]) == ("notify", "main")
    assert options["ExecReload"] == "/bin/kill -HUP $MAINPID"


def test_every_api_behind_the_proxy_is_asked_again_at_once():
    text = (ROOT / "deploy/proxy/nginx.conf").read_text(encoding="utf-8")
    servers = re.findall(r"^\s*server [\d.:]+(.*);", text, re.M)
    assert servers
    assert all("max_fails=0" in each for each in servers)


def test_containers_of_ours_wait_for_the_tables():
    services = yaml.safe_load((ROOT / "deploy/compose/compose.yaml").read_text(encoding="utf-8"))["services"]
    for name in ("manager", "api"):
        assert services[name]["depends_on"]["db-upgrade"] == {"condition": "service_completed_successfully"}


def test_the_containers_run_commands_of_ours_and_keep_no_password_in_a_file():
    path = ROOT / "deploy/compose/compose.yaml"
    services = yaml.safe_load(path.read_text(encoding="utf-8"))["services"]
    ours = [service for service in services.values() if service["image"] == "blazar"]
    assert {service["command"][0] for service in ours} == {"blazar-api", "blazar-manager", "blazar-db-manage"}
    assert {service["command"][0] for service in ours} <= set(PROJECT["scripts"])
    for service in ours:
        for wanted in service["depends_on"]:
            assert wanted in services
        assert (path.parent / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
    assert "password =" not in (path.parent / "blazar.conf").read_text(encoding="utf-8")


def test_the_image_gets_all_that_the_build_reads():
    allowed = (ROOT / "deploy/compose/Dockerfile.dockerignore").read_text(encoding="utf-8")
    dockerfile = (ROOT / "deploy/compose/Dockerfile").read_text(encoding="utf-8")
    read = {"constraints.txt", "pyproject.toml", PROJECT["readme"], *PROJECT["license-files"], "blazar"}
    for name in read:
        assert f"\n!{name}\n" in allowed
        assert re.search(rf"^COPY .*\b{re.escape(name)}\b", dockerfile, re.M)


def test_wsgi_servers_are_given_the_application():
    for name in ("gunicorn.conf.py", "uwsgi.ini"):
        assert "blazar.wsgi.api:application" in (ROOT / "deploy/wsgi" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "page", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("nova/*.md")]), ids=str
)
def test_links_between_pages_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target]
    assert [target for target in targets if target and not (page.parent / target).exists()] == []


def test_the_page_about_each_day_names_all_notifications():
    text = (ROOT / "docs/day-by-day.md").read_text(encoding="utf-8")
    source = (ROOT / "blazar/manager/common/notifications.py").read_text(encoding="utf-8")
    types = set(re.findall(r'^[A-Z_]+ = "([a-z_.]+)"$', source, re.M))
    assert len(types) > 15
    assert types <= set(re.findall(r"`([a-z_.]+)`", text))


def test_processes_of_gunicorn_count_in_the_folder_of_their_unit_which_is_emptied_at_the_start(tmp_path, monkeypatch):
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path))
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")
    settings = runpy.run_path(str(ROOT / "deploy/wsgi/gunicorn.conf.py"))
    folder = tmp_path / "metrics"
    assert os.environ["PROMETHEUS_MULTIPROC_DIR"] == str(folder)
    settings["on_starting"](None)
    (folder / "counter_1.db").touch()
    settings["on_starting"](None)
    assert list(folder.iterdir()) == []
    unit = (ROOT / "deploy/systemd/blazar-api.service").read_text(encoding="utf-8")
    assert re.search(r"^RuntimeDirectory=blazar-api$", unit, re.M)
