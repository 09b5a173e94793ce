# SPDX-License-Identifier: Apache-2.0
"""The pages for contributors are true: their commands run, and what they name exists."""

from __future__ import annotations

import re
import sys
from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import pytest
from blazarclient.shell import main as blazar

from blazar.api.app import create_app
from blazar.api.http.identity import StandaloneIdentity
from blazar.api.http.openapi import Served
from blazar.api.http.routes import Part, Route
from blazar.api.parts import BUILTIN
from blazar.cmd import manage
from blazar.model.base.errors import InvalidInput
from blazar.model.leases.requests import ReservationRequest
from blazar.model.leases.states import EventType, LeaseStatus
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST
from blazar.resources.contract.kind import Kind
from blazar.resources.contract.plugin import members_of
from blazar.resources.contract.type import ResourceType
from blazarconformance import CATALOGUE, harness
from tests.api.conftest import app_of
from tests.client.serving import serving
from tests.tables import new_sqlite
from tests.world import World, a_host

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "contributing").glob("*.md"))
ALL_PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), ROOT / "client" / "README.md"])
DEBUG_A_LEASE = (ROOT / "docs" / "debug-a-lease.md").read_text(encoding="utf-8")

ADD_A_RESOURCE_TYPE = (ROOT / "docs" / "contributing" / "add-a-resource-type.md").read_text(encoding="utf-8")
ADD_A_MICROVERSION = (ROOT / "docs" / "contributing" / "add-a-microversion.md").read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.M | re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_that_a_page_names_exist(page):
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:blazar|tests|docs|examples|bench|nova|conformance)/[\w./-]+)`", text))
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
    linked = set(re.findall(r"\]\((?!http)([^)#]+)", text))
    assert [name for name in sorted(linked) if not (page.parent / name).exists()] == []


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as they are made of them where pages are shown."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    headings = (re.sub(r"\]\([^)]*\)", "", heading) for heading in re.findall(r"^#+ (.+?) *$", text, re.M))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.stem)
def test_links_of_a_page_lead_to_headings(page):
    linked = re.findall(r"\]\((?!\w+:)([^)#\s]*)#([^)\s]+)\)", page.read_text("utf-8"))
    targets = [(page.parent / name if name else page, anchor) for name, anchor in linked]
    assert [f"{to.name}#{anchor}" for to, anchor in targets if to.suffix == ".md" and anchor not in anchors(to)] == []


def test_the_index_leads_to_every_page():
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / name).resolve() for name in re.findall(r"\]\(([^)#]+)\)", index.read_text("utf-8"))}
    assert sorted(set((ROOT / "docs").rglob("*.md")) - linked - {index}) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_functions_that_a_page_names_are_in_the_file_it_names(page):
    text = page.read_text(encoding="utf-8")
    for names, file in re.findall(r"((?:`\w+`(?:, | and )?)+) in\s+`([\w/]+\.py)`", text):
        source = (ROOT / file).read_text(encoding="utf-8")
        for name in re.findall(r"`(\w+)`", names):
            defined = rf"\b(?:def|class) {name}\b|^ *{name}(?:: \w.*)? = "
            assert re.search(defined, source, re.M), f"{name} is not in {file}"


def test_the_commands_of_debug_a_lease_find_the_cause(tmp_path, capsys, monkeypatch):
    world = World(new_sqlite(tmp_path / "blazar.sqlite"))
    world.simulated.users.boot_server("old", project_id="chemistry", user_id="u", host="node-1")
    lease = world.lease(a_host(needs='["==", "$hypervisor_hostname", "node-1"]'), name="stuck")
    world.run_to(world.clock.now() + timedelta(minutes=3))
    world.manager.presence.beat()
    event = f"event:{world.now(lease).event(EventType.START).id}"
    lines = [line for block in blocks(DEBUG_A_LEASE, "sh") for line in block.splitlines()]
    asked = [line.replace("event:ID", event) for line in lines if line.startswith("blazar ")]
    told: dict[str, str] = {}
    with serving(app_of(world.manager)) as way:
        monkeypatch.setenv("OS_AUTH_TYPE", "admin_token")
        monkeypatch.setenv("OS_ENDPOINT", way.url)
        monkeypatch.setenv("OS_TOKEN", "root:admin:admin")
        for line in asked:
            assert blazar(line.split()[1:]) == 0, line
            told[line.split(" ", 3)[1]] = " ".join(capsys.readouterr().out.split())
    assert set(told) == {"lease", "problem", "manager", "allocation", "host"}
    assert "belongs to no reservation" in told["problem"]
    assert lease.id in told["allocation"]
    (manage_line,) = [line for line in lines if line.startswith("blazar-manage ")]
    assert (
        manage.run(world.manager, manage.parse(manage_line.replace(" ID", f" {lease.id}").split()[1:])) == manage.FOUND
    )
    assert "The last reason is: " in capsys.readouterr().out


def test_the_test_of_debug_a_lease_passes(tmp_path):
    (source,) = blocks(DEBUG_A_LEASE, "python")
    names = {"a_host": a_host, "LeaseStatus": LeaseStatus, "EventType": EventType}
    exec(source, names)
    names["test_a_host_with_a_strangers_server_waits"](World(new_sqlite(tmp_path / "blazar.sqlite")))


def test_the_type_of_add_a_resource_type_lives(tmp_path):
    source, _ = blocks(ADD_A_RESOURCE_TYPE, "python")
    # A dataclass looks its module up.
    module = ModuleType("desks")
    sys.modules["desks"] = module
    exec(source, vars(module))
    desks = module.Desks()
    world = World(new_sqlite(tmp_path / "blazar.sqlite"), types=[lambda *_: desks])
    lease = world.lease(ReservationRequest("lab:desk", {"desks": 2}))
    world.run()
    (held,) = desks.occupied.values()
    assert (world.now(lease).status, len(held)) == (LeaseStatus.ACTIVE, 2)
    with pytest.raises(InvalidInput, match="desks is 0"):
        world.lease(ReservationRequest("lab:desk", {"desks": 0}))
    world.manager.leases.delete(lease.id)
    assert desks.occupied == {}


def names_in_rows(table: str) -> set[str]:
    """Return what the first columns of tables name."""
    return set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", table, re.M))))


def test_add_a_resource_type_names_every_member_that_a_type_may_have():
    table = ADD_A_RESOURCE_TYPE.partition("## References")[0]
    assert set(members_of(ResourceType)) - {"within"} == names_in_rows(table)


def test_add_a_resource_type_names_every_member_that_a_kind_may_have():
    table = ADD_A_RESOURCE_TYPE.partition("## A kind of resource")[2].partition("- [ ]")[0]
    assert set(members_of(Kind)) - {"located"} == names_in_rows(table)


def test_the_conformance_test_of_add_a_resource_type_passes(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "instruments"))
    _, source = blocks(ADD_A_RESOURCE_TYPE, "python")
    names: dict[str, Any] = {}
    exec(source, names)
    names["test_conformance"](CATALOGUE["the_end_leaves_nothing"])
    assert len(names["checks"](names["HARNESS"])) > 60


def test_add_a_resource_type_names_all_that_the_conformance_suite_takes():
    section = ADD_A_RESOURCE_TYPE.partition("## The conformance suite")[2]
    tables = section.partition("| field of a harness")
    named = [set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", t, re.M)))) for t in tables[::2]]
    protocols = [
        each for each in vars(harness).values() if getattr(each, "_is_protocol", False) and each is not Protocol
    ]
    ours = [each for each in protocols if each.__module__ == harness.__name__]
    members = {name for each in ours for name in vars(each) if not name.startswith("_")}
    assert named == [members, {field.name for field in fields(harness.Harness)}]


def test_add_a_microversion_names_every_field_of_a_row():
    table = ADD_A_MICROVERSION.partition("## The row")[2].partition("##")[0]
    named = {name for row in re.findall(r"^\| (`.*?) \|", table, re.M) for name in re.findall(r"`(\w+)`", row)}
    assert named == {field.name for field in fields(Route)}


def test_the_example_of_add_a_microversion_works(tmp_path):
    (source,) = blocks(ADD_A_MICROVERSION, "python")
    names = {}
    exec(source, names)
    world = World(new_sqlite(tmp_path / "blazar.sqlite"))
    world.manager.resources.change(HOST, "1", ResourceChange({"gpu": "A100"}))
    rows = {(row.method, row.url) for row in names["NEW"]}
    kept = [replace(part, routes=tuple(r for r in part.routes if (r.method, r.url) not in rows)) for part in BUILTIN]
    served = Served([*kept, Part("new", routes=names["NEW"])], newest=(1, 2))
    http = create_app(world.manager, identity=StandaloneIdentity(), served=served).test_client()
    names["test_1_2_lists_zones_and_properties_without_values"](http)
