# SPDX-License-Identifier: Apache-2.0
"""How an operator says which filters there are, and what is said of a slip."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar

import pytest
from oslo_config import cfg

from blazar.cmd import assemble, config
from blazar.cmd.config import ConfigurationError
from blazar.cmd.options import ENFORCEMENT_OPTIONS
from blazar.enforcement import CloudIdentity, Occasion
from blazar.enforcement.enforcement import BUILTIN
from blazar.enforcement.external import CHECK_CREATE, CHECK_UPDATE, ExternalServiceFilter
from blazar.model.base import plugins
from blazar.model.base.errors import UsageDenied
from blazar.model.use.resource_hours import ProjectUse
from tests.enforcement.builders import a_view, asking, hours


def load(tmp_path, *lines: str) -> cfg.ConfigOpts:
    path = tmp_path / "blazar.conf"
    path.write_text("\n".join(["[enforcement]", *lines, ""]), encoding="utf-8")
    return config.load(["--config-file", str(path)], program="blazar-test")


def filters(tmp_path, *lines: str, identity: CloudIdentity | None = None) -> tuple[Any, ...]:
    return assemble.enforcement(load(tmp_path, *lines), identity or CloudIdentity()).filters


def refusal(tmp_path, *lines: str) -> str:
    with pytest.raises(ConfigurationError) as refused:
        assemble.check_plugins(load(tmp_path, *lines))
    assert "\n" not in refused.value.message
    return refused.value.message


def test_there_are_no_filters_unless_some_are_enabled(tmp_path):
    made = assemble.enforcement(load(tmp_path), CloudIdentity())
    assert (made.enabled, made.needs_use) == (False, False)
    assert not any(made.listens_to(occasion) for occasion in Occasion)


def test_filters_come_in_their_order_with_what_is_set_for_them(tmp_path):
    names = "StartWindowFilter,MaxLeaseDurationFilter,MaxUnitsFilter,MaxConcurrentLeasesFilter"
    made = filters(tmp_path, f"enabled_filters = {names}", "max_lease_duration = 3600", "earliest_start = 0")
    assert [type(each).__name__ for each in made] == names.split(",")
    with pytest.raises(UsageDenied, match="the limit is 1 hour"):
        made[1].check(asking(a_view(hours(1, 3))))


def test_the_option_names_all_filters_of_our_own():
    (option,) = (one for one in ENFORCEMENT_OPTIONS if one.name == "enabled_filters")
    assert [name for name in BUILTIN if name not in option.help] == []


def test_an_unknown_filter_is_refused_with_the_names_of_those_there_are(tmp_path):
    assert refusal(tmp_path, "enabled_filters = MaxLeaseDurationFilter,MaxMoodFilter") == (
        "[enforcement] enabled_filters names MaxMoodFilter, which is not installed; available are: "
        "ExternalServiceFilter, MaxConcurrentLeasesFilter, MaxLeaseDurationFilter, MaxUnitsFilter, "
        "ResourceHoursFilter, SpendFilter, StartWindowFilter"
    )


def test_a_filter_named_twice_is_refused(tmp_path):
    assert "more than once" in refusal(tmp_path, "enabled_filters = MaxUnitsFilter,MaxUnitsFilter")


class MoodFilter:
    """A filter of somebody else's."""

    needs_use: ClassVar[bool] = False
    options: ClassVar[list[cfg.Opt]] = [cfg.StrOpt("mood", default="good")]
    occasions: ClassVar[frozenset[Occasion]] = frozenset()

    def __init__(self, mood: str) -> None:
        self.mood = mood

    @classmethod
    def configured(cls, section, identity):
        return cls(section.mood)

    def check(self, question):
        raise UsageDenied(f"the mood is {self.mood}")

    def notify(self, notification):
        pass


def plug_in(monkeypatch, kind):
    monkeypatch.setattr(sys.modules[__name__], "MoodFilter", kind)
    point = EntryPoint("mood", f"{__name__}:MoodFilter", "blazar.enforcement.filters")
    others = {point.group: [point]}
    monkeypatch.setattr(plugins, "entry_points", lambda group: others.get(group) or entry_points(group=group))


@pytest.mark.parametrize("name", ["mood", "MoodFilter"])
def test_filters_of_others_are_found_by_entry_point_or_name_with_options_of_their_own(tmp_path, monkeypatch, name):
    plug_in(monkeypatch, MoodFilter)
    (made,) = filters(tmp_path, f"enabled_filters = {name}", "mood = bad")
    with pytest.raises(UsageDenied, match="bad"):
        made.check(asking())


def test_a_filter_named_by_its_entry_point_and_by_its_class_is_named_twice(tmp_path, monkeypatch):
    plug_in(monkeypatch, MoodFilter)
    assert "names MoodFilter, mood more than once" in refusal(tmp_path, "enabled_filters = mood,MoodFilter")


def test_options_of_others_that_clash_with_ours_are_refused_with_a_sentence(tmp_path, monkeypatch):
    class Clashing(MoodFilter):
        options: ClassVar[list[cfg.Opt]] = [cfg.StrOpt("max_units")]

    plug_in(monkeypatch, Clashing)
    said = refusal(tmp_path, "enabled_filters = mood")
    assert said.startswith("[enforcement] mood cannot be used as configured: duplicate option: max_units")


def test_a_value_that_an_option_of_others_cannot_have_is_refused_with_a_sentence(tmp_path, monkeypatch):
    class Counting(MoodFilter):
        options: ClassVar[list[cfg.Opt]] = [cfg.IntOpt("mood")]

    plug_in(monkeypatch, Counting)
    assert "[enforcement] mood cannot be used" in refusal(tmp_path, "enabled_filters = mood", "mood = bad")


def test_a_latest_start_before_the_earliest_is_refused(tmp_path):
    lines = ("enabled_filters = StartWindowFilter", "earliest_start = 60", "latest_start = 59")
    assert refusal(tmp_path, *lines) == (
        "[enforcement] earliest_start is 60 and latest_start 59, so that no lease could start at all; give a "
        "latest_start that is not before earliest_start"
    )


BUDGET = "enabled_filters = ResourceHoursFilter"


def test_a_budget_is_read_with_its_period(tmp_path):
    (made,) = filters(tmp_path, BUDGET, "max_resource_hours = host:1, vcpu:-1", "resource_hours_period = 7")
    with pytest.raises(UsageDenied, match=r"take 2 host-hours .* any 7 days \(max_resource_hours\) 1 are left"):
        made.check(asking(a_view(hours(1, 3))))


@pytest.mark.parametrize("value", ["host", "host:x", "host:1.5", "host:-2", "host:1,host"])
def test_a_budget_that_cannot_be_read_is_refused_with_what_it_should_be(tmp_path, value):
    with pytest.raises(ConfigurationError) as refused:
        load(tmp_path, BUDGET, f"max_resource_hours = {value}")
    assert refused.value.message.startswith("[enforcement] max_resource_hours cannot be")
    assert "give names with whole numbers, for example name:10, separated by commas" in refused.value.message


def test_a_budget_without_a_number_is_refused(tmp_path):
    assert refusal(tmp_path, BUDGET, "max_resource_hours = host:1,vcpu:") == (
        "[enforcement] max_resource_hours gives no number for vcpu; write it as vcpu:10"
    )


def test_a_budget_of_what_nobody_counts_is_refused(tmp_path):
    assert refusal(tmp_path, BUDGET, "max_resource_hours = host:1,gpu:2") == (
        "[enforcement] max_resource_hours names gpu, which is not a measure; available are: host, floatingip, "
        "network, device, instance, vcpu, card, gigabyte, generic, volume"
    )


MONEY = "enabled_filters = SpendFilter"


def test_shares_of_budgets_are_read(tmp_path):
    lines = (MONEY, "max_spend = 10", "budget_shares = 90, 50")
    made = assemble.enforcement(load(tmp_path, *lines), CloudIdentity())
    limit = made.complete_use(ProjectUse("physics", 1, ()), asking()).spend_limit
    assert limit is not None
    assert limit.shares == (50, 90)


def test_a_budget_of_money_is_read(tmp_path):
    (made,) = filters(tmp_path, MONEY, "max_spend = 1000.5")
    assert made.spend_limit("anybody").nano == 1_000_500_000_000
    for none in ("max_spend = -1", ""):
        (unlimited,) = filters(tmp_path, MONEY, none)
        assert unlimited.spend_limit("anybody") is None


@pytest.mark.parametrize("value", ["much", "-2", "1e3", "1.0000000001", "10 EUR", "."])
def test_a_budget_of_money_that_cannot_be_read_is_refused(tmp_path, value):
    assert refusal(tmp_path, MONEY, f"max_spend = {value}") == (
        f"[enforcement] max_spend cannot be '{value}'; give an amount in the currency of the price lists, such as "
        "1000.00, or -1 for no limit"
    )


def test_other_units_are_limited_by_name(tmp_path):
    lines = ("enabled_filters = MaxUnitsFilter", "max_units_of = instance:3")
    (made,) = filters(tmp_path, *lines)
    assert made.limits["instance"].limit_of("anybody") == 3
    assert refusal(tmp_path, lines[0], "max_units_of = host:3") == (
        "[enforcement] max_units_of names host, which is not a measure; available are: floatingip, network, device, "
        "instance, vcpu, card, gigabyte, generic, volume"
    )


def test_a_period_that_there_is_not_is_refused(tmp_path):
    assert "resource_hours_period cannot be 'year'" in refusal(tmp_path, BUDGET, "resource_hours_period = year")


EXTERNAL = "enabled_filters = ExternalServiceFilter"
BASE = "external_service_base_endpoint = https://budgets.example/blazar/"


def endpoints(tmp_path, *lines: str) -> dict[str, str]:
    (made,) = filters(tmp_path, EXTERNAL, *lines)
    return made.endpoints


def test_the_base_stands_for_the_three_endpoints_that_there_always_were(tmp_path):
    assert endpoints(tmp_path, BASE) == {
        CHECK_CREATE: "https://budgets.example/blazar/check-create",
        CHECK_UPDATE: "https://budgets.example/blazar/check-update",
        "on-end": "https://budgets.example/blazar/on-end",
    }


def test_a_base_without_a_slash_at_its_end_loses_its_last_part(tmp_path):
    base = "external_service_base_endpoint = https://budgets.example/api/v1"
    assert endpoints(tmp_path, base)[CHECK_CREATE] == "https://budgets.example/api/check-create"


def test_an_endpoint_of_its_own_counts_more_than_the_base(tmp_path):
    own = "external_service_on_end_endpoint = https://other.example/bye"
    assert endpoints(tmp_path, BASE, own)["on-end"] == "https://other.example/bye"
    assert endpoints(tmp_path, own) == {"on-end": "https://other.example/bye"}


@pytest.mark.parametrize("name", ["check-create", "check-update", "on-end", "commit-create", "commit-update"])
def test_each_endpoint_of_its_own_is_called(tmp_path, name):
    own = f"external_service_{name.replace('-', '_')}_endpoint = https://other.example/own"
    assert endpoints(tmp_path, BASE, own)[name] == "https://other.example/own"


def test_commits_are_told_only_where_they_have_an_endpoint(tmp_path):
    commit = "external_service_commit_create_endpoint = https://budgets.example/booked"
    (made,) = filters(tmp_path, EXTERNAL, BASE, commit)
    assert made.occasions == {Occasion.CREATED, Occasion.ENDED}


def test_without_an_endpoint_the_filter_is_refused(tmp_path):
    assert "external_service_base_endpoint" in refusal(tmp_path, EXTERNAL)


@pytest.mark.sample(1)
@pytest.mark.parametrize("url", ["budgets.example", "ftp://budgets.example/", "http://", "http:///x", "http://a:b/"])
def test_what_is_no_url_of_a_service_is_refused(tmp_path, url):
    for option in ("external_service_base_endpoint", "external_service_commit_update_endpoint"):
        said = refusal(tmp_path, EXTERNAL, f"{option} = {url}")
        assert said == f"[enforcement] {option} is not a URL of a service; write it as https://HOST/blazar/"


def test_a_url_with_a_password_is_refused_without_telling_it(tmp_path):
    said = refusal(tmp_path, EXTERNAL, "external_service_base_endpoint = https://me:hush@budgets.example/")
    assert "remove it" in said
    assert "hush" not in said


TOKEN_LINES = (
    "external_service_token = t",
    "external_service_bearer_token = t",
    "external_service_keystone_token = true",
)


@pytest.mark.slow
@pytest.mark.parametrize("token", TOKEN_LINES)
def test_no_token_travels_to_another_machine_in_the_clear(tmp_path, token):
    for option in ("external_service_base_endpoint", "external_service_commit_create_endpoint"):
        for host in ("budgets.example:8080", "10.0.0.1", "[fd00::1]", "localhost.example"):
            said = refusal(tmp_path, EXTERNAL, f"{option} = http://{host}/", token)
            assert said == (
                f"[enforcement] {option} is an http:// URL of another machine, and {token.partition(' ')[0]} would "
                "be sent to it unencrypted; give an https:// URL, or one on loopback"
            )


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8080", "127.9.9.9", "[::1]:80"])
def test_a_token_may_stay_on_this_machine(tmp_path, host):
    url = f"http://{host}/"
    assert endpoints(tmp_path, f"external_service_on_end_endpoint = {url}", TOKEN_LINES[0]) == {"on-end": url}


def test_without_a_token_any_service_can_be_asked_over_http(tmp_path):
    assert endpoints(tmp_path, "external_service_on_end_endpoint = http://budgets.example/") == {
        "on-end": "http://budgets.example/"
    }


def test_two_tokens_are_one_too_many(tmp_path):
    said = refusal(tmp_path, EXTERNAL, BASE, "external_service_token = one", "external_service_bearer_token = other")
    assert said == (
        "[enforcement] external_service_token and external_service_bearer_token are set, but only one can be sent; "
        "keep one of them"
    )


def test_a_token_that_no_header_can_have_is_refused_without_telling_it(tmp_path):
    said = refusal(tmp_path, EXTERNAL, BASE, "external_service_token = schlüssel")
    assert "external_service_token" in said
    assert "schl" not in said


def test_a_token_of_the_service_user_needs_keystone(tmp_path):
    lines = (EXTERNAL, BASE, "external_service_keystone_token = true")
    assemble.check_plugins(load(tmp_path, *lines))
    with pytest.raises(ConfigurationError, match="this mode has no Keystone"):
        filters(tmp_path, *lines)


@pytest.mark.parametrize(
    ("line", "headers"),
    [
        ("external_service_token = t", {"X-Auth-Token": "t"}),
        ("external_service_bearer_token = t", {"Authorization": "Bearer t"}),
        ("external_service_keystone_token = true", {"X-Auth-Token": "fresh"}),
        ("external_service_token =", {}),
    ],
)
def test_each_way_to_say_who_we_are(tmp_path, line, headers):
    class Tokens:
        def token(self):
            return "fresh"

        def renew(self):
            pass

    (made,) = filters(tmp_path, EXTERNAL, BASE, line, identity=CloudIdentity(tokens=Tokens()))
    assert isinstance(made, ExternalServiceFilter)
    assert made.credential.headers() == headers
