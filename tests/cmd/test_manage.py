# SPDX-License-Identifier: Apache-2.0
"""blazar-manage: what is in trouble, without API and bus; exit codes that scripts can use."""

from __future__ import annotations

import logging
import os
import re
import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from oslo_log.formatters import JSONFormatter

from blazar.clouds.ports.compute import Flavor
from blazar.clouds.ports.webhooks import Reception, WebhookReceipt
from blazar.cmd import doctor, manage
from blazar.model.base.errors import CloudUnavailable, InvalidInput
from blazar.model.leases.states import EventType, LeaseStatus
from blazar.model.subscriptions.details import SubscriptionRequest
from blazar.resources.instances.reservation_flavor import flavor_name
from blazar.store.sql.engine import WRITES
from blazar.store.sql.tables import allocations, events
from tests.cmd.stub import PASSWORD
from tests.world import World, a_host

HOUR = timedelta(hours=1)
UNKNOWN = "0" * 36


@pytest.fixture
def late(world: World):
    lease = world.lease(a_host(), start=HOUR, name="training\x1b[2J")
    world.clock.to(lease.window.start + timedelta(minutes=2))
    return lease


def run(world: World, *words: str) -> int:
    return manage.run(world.manager, manage.parse(words))


def test_days_of_reports_are_put_on_record_again_as_far_as_they_are_over(world, capsys):
    world.clock.by(days=3)
    assert run(world, "reports", "recompute", "--from", "2030-04-01", "--to", "2030-04-30") == manage.DONE
    assert capsys.readouterr().out == "3 days were put on record\n"
    with pytest.raises(InvalidInput, match="--to is 2030-04-01, which is before --from, 2030-04-02; give a later one"):
        run(world, "reports", "recompute", "--from", "2030-04-02", "--to", "2030-04-01")


@pytest.mark.parametrize("day", ["yesterday", "2030-02-30", "0001-01-01", "9999-12-31", "x" * 10_000])
def test_what_is_no_day_of_a_report_is_refused_with_how_to_write_it(day, capsys):
    with pytest.raises(SystemExit) as refused:
        manage.parse(["reports", "recompute", "--from", "2030-04-01", "--to", day])
    assert refused.value.code == 2
    assert "is no day of the years 1971 to 8999; write it as 2030-04-01" in capsys.readouterr().err


def test_a_problem_is_listed_explained_tried_and_done(world, late, capsys):
    problem_id = f"event:{late.event(EventType.START).id}"
    assert run(world, "problems", "list") == manage.FOUND
    told = capsys.readouterr().out
    assert told.startswith(f"{problem_id}  2030-04-01 13:00  start_lease of lease training")
    assert "\x1b" not in told
    assert run(world, "problems", "why", problem_id) == manage.FOUND
    told = capsys.readouterr().out
    assert "no manager runs" in told
    assert "To act: retry." in told
    retry = ["problems", "retry", problem_id, "--reason", "ticket 4711"]
    assert run(world, *retry) == manage.DONE
    assert "Nothing was done; repeat it with --yes" in capsys.readouterr().err
    assert run(world, *retry, "--yes") == manage.DONE
    world.run()
    assert world.now(late).status is LeaseStatus.ACTIVE
    assert run(world, "problems", "list") == manage.DONE
    page = world.manager.leases.history(late.id, manage.Page(9, "at"))
    (retried,) = [entry for entry in page.items if entry.verb == "retried"]
    assert retried.by.project_id == "blazar-manage"
    assert retried.by.operator


def test_of_several_some_are_refused_and_no_more_than_fifty_are_taken(world, late, capsys):
    problem_id = f"event:{late.event(EventType.START).id}"
    both = ["problems", "retry", "event:none", problem_id, "--reason", "x", "--yes"]
    assert run(world, *both) == manage.REFUSED
    told = capsys.readouterr()
    assert "there is no problem" in told.err
    assert "is tried again now" in told.out
    assert run(world, "problems", "give-up", *["event:x"] * 51, "--reason", "x") == 2
    with pytest.raises(SystemExit) as stopped:
        run(world, "problems", "retry", problem_id)
    assert stopped.value.code == 2


@pytest.mark.parametrize("reason", ["", " ", "\t\n", "x" * 1001])
def test_the_history_is_told_why(world, late, capsys, reason):
    with pytest.raises(SystemExit) as stopped:
        run(world, "leases", "end", late.id, "--reason", reason, "--yes")
    assert stopped.value.code == 2
    assert "--reason: give why, in 1 to 1000 characters" in capsys.readouterr().err


def test_only_what_can_be_done_is_to_be_repeated(world, late, capsys):
    again = "repeat it with --yes"
    assert run(world, "problems", "retry", "event:none", "--reason", "x") == manage.REFUSED
    assert again not in capsys.readouterr().err
    both = ["problems", "retry", "event:none", f"event:{late.event(EventType.START).id}", "--reason", "x"]
    assert run(world, *both) == manage.REFUSED
    assert again in capsys.readouterr().err
    assert run(world, "leases", "end", "none", "--reason", "x") == manage.REFUSED
    assert again not in capsys.readouterr().err


def test_a_user_without_a_name_is_told_by_its_number(world, late, monkeypatch):
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])
    assert run(world, "leases", "end", late.id, "--reason", "x", "--yes") == manage.DONE
    (*_, entry) = world.manager.leases.history(late.id, manage.Page(9, "at")).items
    assert entry.by.user_id == f"uid {os.getuid()}"


def test_why_a_lease_does_not_go_on_and_its_end(world, late, capsys):
    assert run(world, "leases", "why", late.id) == manage.FOUND
    told = capsys.readouterr().out
    assert "is PENDING" in told
    assert "It is due since 2030-04-01 13:00" in told
    end = ["leases", "end", late.id, "--reason", "x"]
    assert run(world, *end) == manage.DONE
    assert world.now(late).status is LeaseStatus.PENDING
    assert run(world, *end, "--yes") == manage.DONE
    world.run()
    assert world.now(late).deleted_at is not None
    assert run(world, *end, "--yes") == manage.REFUSED


def test_a_look_at_a_cloud_that_does_not_answer_is_not_nothing(world, capsys):
    world.simulated.compute.create_flavor(Flavor(UNKNOWN, flavor_name(UNKNOWN), 1, 1, 1))
    assert run(world, "problems", "list", "--look", "--kind", "unknown") == manage.FOUND
    world.faults.fail_before("flavor_names", CloudUnavailable("Nova is down"), times=9)
    assert run(world, "problems", "list", "--look") == manage.FAILED
    assert "cannot be listed in the cloud now" in capsys.readouterr().err


def test_managers_are_listed(world, capsys):
    assert run(world, "managers", "list") == manage.DONE
    assert capsys.readouterr().out == ""
    world.manager.presence.beat()
    assert run(world, "managers", "list") == manage.DONE
    assert "seen 2030-04-01 12:00  0 events" in capsys.readouterr().out
    world.clock.by(seconds=61)
    assert run(world, "managers", "list") == manage.FOUND
    assert "not up" in capsys.readouterr().out


def test_refused_messages_are_listed_sent_again_and_forgotten(world, capsys):
    request = SubscriptionRequest("physics", "curie", "https://ci.example/x", ("lease.*",))
    made = world.manager.subscriptions.create(request).subscription
    assert run(world, "deliveries", "list") == manage.DONE

    def tell(minutes: int = 0) -> None:
        for _ in range(minutes + 1):
            world.manager.journal_numbering.run_once()
            world.manager.delivery.run_due()
            world.clock.by(seconds=60)

    tell()
    world.webhooks.answers["https://ci.example/x"] = lambda message: WebhookReceipt(Reception.REFUSED, "no\x1b[2J")
    lease = world.lease(a_host(), start=HOUR)
    tell(9)
    capsys.readouterr()
    assert run(world, "deliveries", "list") == manage.FOUND
    assert f"delivery:{made.id}:" in capsys.readouterr().out
    assert run(world, "deliveries", "list", "--subscription", made.id) == manage.FOUND
    told = capsys.readouterr().out
    assert f"blazar.lease.created  leases/{lease.id}  no" in told
    assert "\x1b" not in told
    act = [made.id, "--reason", "the receiver is mended"]
    assert run(world, "deliveries", "retry", *act) == manage.DONE
    assert "Nothing was done; repeat it with --yes" in capsys.readouterr().err
    assert run(world, "deliveries", "retry", *act, "--yes") == manage.DONE
    tell(9)
    assert run(world, "deliveries", "drop", *act, "--yes") == manage.DONE
    assert "The message is forgotten." in capsys.readouterr().out
    assert run(world, "deliveries", "list", "--subscription", made.id) == manage.DONE
    assert run(world, "deliveries", "drop", *act, "--yes") == manage.REFUSED
    assert f"there is no problem 'delivery:{made.id}'" in capsys.readouterr().err


def test_books_that_agree_are_told_so_and_each_fault_is_named(world, capsys):
    first, second = world.lease(a_host(), start=HOUR), world.lease(a_host(), start=HOUR)
    assert run(world, "data", "check") == manage.DONE
    assert capsys.readouterr().out == "Nothing is wrong in the books\n"
    (other,) = {part.resource_id for part in world.store.calendar.of_lease(second.id)}
    with world.engine.execution_options(**{WRITES: True}).begin() as connection:
        mine = allocations.c.lease_id == first.id
        connection.execute(allocations.update().where(mine).values(resource_id=other))
        connection.execute(events.update().where(events.c.lease_id == first.id).values(due_at=None))
        claim = {"claimed_by": "ctl1:1:a:b", "due_at": world.clock.now() + 9 * HOUR}
        connection.execute(events.update().where(events.c.lease_id == second.id).values(**claim))
    lease = world.now(second)
    world.store.leases.save(lease, replace(lease, status=LeaseStatus.TERMINATED), at=world.clock.now())
    lease = world.now(first)
    world.store.leases.save(lease, replace(lease, status=LeaseStatus.STARTING), at=world.clock.now())
    assert run(world, "data", "check") == manage.FOUND
    told = capsys.readouterr().out
    assert f"is promised to lease {first.id} and to lease {second.id} at the same time" in told
    assert f"lease {first.id} is STARTING, and no event of it is due" in told
    assert f"lease {second.id} is over, and still has node-" in told
    assert "is claimed for longer than a claim lasts" in told
    lease = world.now(first)
    world.store.leases.save(lease, replace(lease, status=LeaseStatus.PENDING), at=world.clock.now())
    run(world, "data", "check")
    assert f"lease {first.id} is PENDING, and its end is never due" in capsys.readouterr().out


@pytest.mark.slow
def test_it_works_without_a_bus_and_writes_a_report_without_secrets(working, file, tmp_path, capsys):
    conf = file(*working(), "plugins = physical.host.plugin")
    assert manage.main(["--config-file", conf, "problems", "list", "--look"]) == manage.DONE
    report = tmp_path / "report.txt"
    assert manage.main(["--config-file", conf, "doctor", "--output", str(report), "--lease", "none"]) == manage.DONE
    text = report.read_text(encoding="utf-8")
    for title in (
        "Versions",
        "Options",
        "Upgrade check",
        "Problems",
        "Managers",
        "Books",
        "Last warnings",
        "Lease none",
    ):
        assert f"== {title}\n" in text
    assert report.stat().st_mode & 0o777 == 0o600
    assert PASSWORD not in text
    assert "manager.plugins" in text
    assert "(cannot be told: Lease" in text
    assert manage.main(["--config-file", conf, "doctor", "--output", str(report)]) == manage.FAILED
    assert "report.txt" in capsys.readouterr().err


@pytest.mark.parametrize(
    "formatter",
    [logging.Formatter("%(asctime)s %(process)d %(levelname)s %(name)s %(message)s"), JSONFormatter()],
    ids=["text", "JSON"],
)
def test_a_report_has_the_warnings_of_a_log_of_either_form(load, tmp_path, formatter):
    log = tmp_path / "manager.log"
    levels = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)
    records = [
        logging.LogRecord("blazar.manager", level, __file__, 1, f"said at {level}, no WARNING", (), None)
        for level in levels
    ]
    log.write_text("".join(f"{formatter.format(record)}\n" for record in records[:2]), encoding="utf-8")
    conf = load("[DEFAULT]", f"log_file = {log}")
    assert list(doctor.read_warnings(conf)) == ["none"]
    log.write_text("".join(f"{formatter.format(record)}\n" for record in records), encoding="utf-8")
    told = list(doctor.read_warnings(conf))
    assert [re.search(r"said at (\d+)", line)[1] for line in told] == ["30", "40", "50"]


@pytest.mark.slow
def test_claims_are_renewed_while_a_command_runs_and_no_manager_is_seen(working, file, monkeypatch):
    used = []

    def work(manager, options):
        beaten = threading.Event()
        manager.claims.beaten.connect(beaten.set)
        manager.claims.wake()
        assert beaten.wait(30)
        assert manager.service.managers() == ()
        used.append(manager)
        return manage.REFUSED

    monkeypatch.setattr(manage, "run", work)
    conf = file(*working(), "plugins = physical.host.plugin")
    assert manage.main(["--config-file", conf, "problems", "list"]) == manage.REFUSED
    (manager,) = used
    assert manager.claims.name not in {thread.name for thread in threading.enumerate()}


def test_a_database_that_is_not_there_is_told_in_one_sentence(capsys, file, working):
    conf = file(*working(database="sqlite:////no/such/folder/x"))
    assert manage.main(["--config-file", conf, "problems", "list"]) == manage.FAILED
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("blazar-manage: the database cannot be used: unable to open database file; check")
