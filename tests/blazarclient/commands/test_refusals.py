# SPDX-License-Identifier: Apache-2.0
"""What the service refuses is told by the option that said it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from blazarclient.commands.refusals import in_words_of, of_reservations
from blazarclient.exception import Fault, InvalidRequest, Uncertain

from tests.blazarclient.commands.conftest import ID, URL, Run, refusal, sent

ONE = of_reservations([("--host", 1)])
TWO = of_reservations([("--physical-reservation", 0), ("--reservation", 2)])
HOSTS = "resource_type=physical:host,min=1"


def told(places: dict[str, str], detail: str, pointer: str | None) -> str:
    fault = Fault(400, detail, pointer=pointer)
    with pytest.raises(InvalidRequest) as error, in_words_of(places):
        raise InvalidRequest(str(fault), faults=[fault])
    return str(error.value)


def test_reservations_are_counted_where_an_option_has_several() -> None:
    assert of_reservations([("--physical-reservation", 1), ("--reservation", 2)]) == {
        "/reservations/0": "--physical-reservation",
        "/reservations/1": "--reservation, the first",
        "/reservations/2": "--reservation, the second",
    }
    assert of_reservations([("lease.yaml", 11)])["/reservations/10"] == "lease.yaml, number 11"


@pytest.mark.parametrize(
    ("places", "detail", "pointer", "sentence"),
    [
        (ONE, "min is 0; give 1 or more", "/reservations/0/min", "min is 0; give 1 or more"),
        (ONE, "reservations[0].min is 0", "/reservations/0/min", "--host: min is 0"),
        (ONE, "give 1 or more", "/reservations/0/min", "--host, min: give 1 or more"),
        (ONE, "Not enough hosts.", "/reservations/0", "Not enough hosts."),
        (TWO, "Not enough hosts.", "/reservations/0", "--reservation, the first: Not enough hosts."),
        (TWO, "reservations[1].min is 0", "/reservations/1/min", "--reservation, the second: min is 0"),
        (TWO, "min is 0", "/reservations/10/min", "min is 0"),
        ({"/start_date": "--start"}, "It is over.", "/start_date", "--start: It is over."),
        ({"/start_date": "--start"}, "start_date is over", "/start_date", "start_date is over"),
        (ONE, "It is over.", "/start_date", "/start_date: It is over."),
        (ONE, "No.", None, "No."),
    ],
)
def test_a_place_in_the_request_is_told_by_what_said_it(
    places: dict[str, str], detail: str, pointer: str | None, sentence: str
) -> None:
    assert told(places, detail, pointer) == sentence


def test_a_message_about_more_than_the_refusal_stays() -> None:
    with pytest.raises(Uncertain, match="^It is not known"), in_words_of(ONE):
        raise Uncertain("It is not known", faults=[Fault(503, "reservations[0] is lost", pointer="/reservations/0")])


OVER = refusal("date_in_past", "It is over.", 400, pointer="/start_date")
WRONG = refusal("invalid_value", "reservations[1].before_end is 'x'", 400, pointer="/reservations/1/before_end")


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
@pytest.mark.parametrize(
    ("words", "answer", "sentence"),
    [
        (("--reservation", HOSTS) * 2, WRONG, "--reservation, the second: before_end is 'x'\n"),
        (("--physical-reservation", "min=1", "--start", "+1h"), OVER, "--start: It is over.\n"),
        (("--physical-reservation", "min=1", "--start-date", "2030-01-01 09:00"), OVER, "--start-date: It is over.\n"),
    ],
)
def test_a_booking_that_is_refused_names_the_option(
    run: Run, service: Any, words: tuple[str, ...], answer: dict[str, Any], sentence: str, more: tuple[str, ...]
) -> None:
    service.post(f"{URL}/leases", **answer)
    assert run("lease", "create", "exam", *words, "--duration", "1d", *more)[::2] == (1, sentence)


def test_a_booking_from_a_file_names_the_file(run: Run, service: Any, tmp_path: Path) -> None:
    lease = tmp_path / "lease.yaml"
    hosts = "  - {resource_type: physical:host, min: 1}\n"
    lease.write_text(f"name: exam\nduration: 1d\nreservations:\n{hosts}{hosts}", encoding="utf-8")
    service.post(f"{URL}/leases", **WRONG)
    _, _, err = run("lease", "create", "-F", str(lease))
    assert err == f"reservations of {lease}, the second: before_end is 'x'\n"


def test_a_search_that_is_refused_names_the_option(run: Run, service: Any) -> None:
    service.post(f"{URL}/availability", **WRONG)
    _, _, err = run("find", "--host", "min=1", "--reservation", HOSTS)
    assert err == "--reservation: before_end is 'x'\n"


def test_a_change_that_is_refused_names_the_option(run: Run, service: Any) -> None:
    service.put(f"{URL}/leases/{ID}", **OVER)
    assert run("lease", "update", "training", "--start", "now")[::2] == (1, "--start: It is over.\n")
    assert len(sent(service, "PUT")) == 1
