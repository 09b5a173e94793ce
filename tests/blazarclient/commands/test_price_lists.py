# SPDX-License-Identifier: Apache-2.0
"""``price-list``: what leases cost."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from tests.blazarclient.commands.conftest import NEW, URL, Run, sent

DOCUMENT = {"currency": "EUR", "prices": [{"sku": "host", "measure": "host", "per_hour": "0.80"}]}
HEAD = {
    "version": 2,
    "valid_from": "2026-12-01T00:00:00Z",
    "published_at": "2026-11-20T09:00:00Z",
    "published_by": None,
    "digest": None,
}
CHANGE = {"field": "fee", "before": None, "after": '"5.00"'}


@pytest.fixture
def told(service: Any) -> Any:
    """A service with two lists."""
    first = {**HEAD, "version": 1}
    service.get(f"{URL}/price-lists", json={"price_lists": [first, HEAD], "links": []}, headers=NEW)
    service.get(f"{URL}/price-lists/2", json={"price_list": {**HEAD, "content": DOCUMENT}}, headers=NEW)
    done = {"price_list": {**HEAD, "version": 3, "content": DOCUMENT}, "changes": [CHANGE], "left_out": ["host-2030"]}
    done["replaced"], done["unmatched"] = [2], ["host-a100", "host-h100"]
    amounts = {"amount": "1280.00", "new_amount": "1344.50"}
    month = {"month": "2030-03", "currency": "EUR", **amounts, "leases": 2, "is_whole": False, "projects": []}
    done["last_month"] = month
    service.post(f"{URL}/price-lists", json=done, headers=NEW)
    return service


def test_a_list_has_the_versions_oldest_first(run: Run, told: Any) -> None:
    code, out, err = run("price-list", "list", "-f", "value", "-c", "version")
    assert (code, out.split(), err) == (0, ["1", "2"], "")


def test_the_newest_is_shown_if_none_is_named(run: Run, told: Any) -> None:
    code, out, _ = run("price-list", "show", "-f", "json")
    assert code == 0
    assert json.loads(out)["content"] == DOCUMENT
    assert run("price-list", "show", "2", "-f", "json")[1] == out


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_file_is_published_and_what_it_changes_is_said(run: Run, told: Any, tmp_path: Any, dry_run: bool) -> None:
    path = tmp_path / "prices.json"
    path.write_text(json.dumps(DOCUMENT))
    code, out, err = run("price-list", "publish", str(path), "-f", "json", *(["--dry-run"] if dry_run else []))
    assert (code, json.loads(out)) == (0, [CHANGE])
    assert ("would be price list 3" if dry_run else "Price list 3 is published") in err
    assert "It has no price for host-2030" in err
    assert "No resource has the price of host-a100, host-h100 now" in err
    assert "Price list 2, which was published ahead, never holds for what is booked from then on" in err
    assert "By it what 2 leases cost in 2030-03 would have been 1344.50 EUR instead of 1280.00" in err
    (request,) = sent(told, "POST")
    assert request.json() == DOCUMENT
    assert ("dry_run=true" in request.url.lower()) is dry_run


@pytest.mark.parametrize("text", ["[]", "{", None])
def test_a_file_without_a_list_is_not_sent(run: Run, told: Any, tmp_path: Any, text: str | None) -> None:
    path = tmp_path / "prices.json"
    if text is not None:
        path.write_text(text)
    code, _, err = run("price-list", "publish", str(path))
    assert code != 0
    assert str(path) in err
    assert not sent(told, "POST")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'{"fee": "5", "decimals": 2, "fee": "50"}', "is no JSON: the key 'fee' occurs twice; leave one out"),
        (b'{"prices": [{"sku": "a", "sku": "b"}]}', "the key 'sku' occurs twice"),
        ("{}".encode("utf-16"), "is not in UTF-8; save it as JSON in UTF-8"),
        (b"", "is no JSON: "),
    ],
)
def test_a_file_that_is_not_what_it_seems_is_not_sent(
    run: Run, told: Any, tmp_path: Any, data: bytes, says: str
) -> None:
    path = tmp_path / "prices.json"
    path.write_bytes(data)
    code, _, err = run("price-list", "publish", str(path))
    assert code != 0
    assert says in err
    assert not sent(told, "POST")


def test_a_file_of_windows_and_the_standard_input_are_published(
    run: Run, told: Any, tmp_path: Any, monkeypatch: Any
) -> None:
    data = b"\xef\xbb\xbf" + json.dumps(DOCUMENT).encode()
    path = tmp_path / "prices.json"
    path.write_bytes(data)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    for name in (str(path), "-"):
        assert run("price-list", "publish", name)[0] == 0
    assert [request.json() for request in sent(told, "POST")] == [DOCUMENT] * 2
