# SPDX-License-Identifier: Apache-2.0
"""Who may do what: the rules that operators know, by the names and defaults that their policy files build on."""

from __future__ import annotations

import ast
import socket
from contextlib import nullcontext
from pathlib import Path

import pytest
from oslo_config import cfg
from oslo_policy import opts
from oslo_policy import policy as oslo

from blazar.api.app import create_app
from blazar.api.http.identity import Caller
from blazar.api.http.policy import Policy
from blazar.api.parts import all_parts, list_rules
from blazar.model.base.errors import InvalidInput

ADMIN = "rule:admin"
READER = "rule:project_reader_or_admin"
MEMBER = "rule:project_member_or_admin"
OF_HOSTS = "rule:admin and rule:blazar:oshosts:put and rule:blazar:oshosts:reallocate"


def of_kinds(host: str, *, address: str | None = None, network: str | None = None, others: str | None = None) -> str:
    """Return the default of a rule of ``/v1/resources`` that has these rules of kinds at 1.0."""
    return (
        f"('host':%(kind)s and rule:blazar:oshosts:{host})"
        f" or ('floatingip':%(kind)s and rule:blazar:floatingips:{address or host})"
        f" or ('network':%(kind)s and rule:blazar:networks:{network or others or host})"
        f" or ('device':%(kind)s and rule:blazar:devices:{others or host})"
        " or (not 'host':%(kind)s and not 'floatingip':%(kind)s and not 'network':%(kind)s"
        " and not 'device':%(kind)s and rule:admin)"
    )


OWN_GET = of_kinds("get").rpartition(" or (not")[0]
DEFAULTS = {
    "admin": "is_admin:True or role:admin",
    "admin_or_owner": "rule:admin or project_id:%(project_id)s",
    "project_member_api": "role:member and project_id:%(project_id)s",
    "project_reader_api": "role:reader and project_id:%(project_id)s",
    "project_member_or_admin": "rule:project_member_api or rule:admin",
    "project_reader_or_admin": "rule:project_reader_api or rule:admin",
    "blazar:leases:get": READER,
    "blazar:leases:post": MEMBER,
    "blazar:leases:put": MEMBER,
    "blazar:leases:delete": MEMBER,
    "blazar:leases:keep": "rule:blazar:leases:put",
    "blazar:leases:confirm": "rule:blazar:leases:put",
    "blazar:leases:best_effort": "rule:admin",
    "blazar:leases:hold": "rule:admin and rule:blazar:leases:put",
    "blazar:oshosts:get": ADMIN,
    "blazar:oshosts:post": ADMIN,
    "blazar:oshosts:put": ADMIN,
    "blazar:oshosts:delete": ADMIN,
    "blazar:oshosts:get_allocations": ADMIN,
    "blazar:oshosts:reallocate": ADMIN,
    "blazar:oshosts:refresh": ADMIN,
    "blazar:oshosts:get_resource_properties": ADMIN,
    "blazar:oshosts:update_resource_properties": ADMIN,
    "blazar:floatingips:get": READER,
    "blazar:floatingips:post": ADMIN,
    "blazar:floatingips:delete": ADMIN,
    "blazar:resources:get": f"{READER} or {OWN_GET}",
    "blazar:resources:post": of_kinds("post"),
    "blazar:resources:put": of_kinds("put", address="post"),
    "blazar:resources:delete": of_kinds("delete"),
    "blazar:resources:refresh": of_kinds("refresh", address="post", others="put"),
    "blazar:resources:get_allocations": of_kinds("get_allocations", address="post"),
    "blazar:resources:reallocate": of_kinds("reallocate", address="post", network="put"),
    "blazar:resources:get_candidates": of_kinds("post"),
    "blazar:resources:get_properties": of_kinds("get_resource_properties", address="post"),
    "blazar:resources:update_properties": of_kinds("update_resource_properties", address="post"),
    "blazar:resources:get_private": of_kinds("get", address="post"),
    "blazar:networks:get": ADMIN,
    "blazar:networks:post": ADMIN,
    "blazar:networks:put": ADMIN,
    "blazar:networks:delete": ADMIN,
    "blazar:networks:get_allocations": ADMIN,
    "blazar:networks:get_resource_properties": ADMIN,
    "blazar:networks:update_resource_properties": ADMIN,
    "blazar:devices:get": ADMIN,
    "blazar:devices:post": ADMIN,
    "blazar:devices:put": ADMIN,
    "blazar:devices:delete": ADMIN,
    "blazar:devices:get_allocations": ADMIN,
    "blazar:devices:reallocate": ADMIN,
    "blazar:devices:get_resource_properties": ADMIN,
    "blazar:devices:update_resource_properties": ADMIN,
    "blazar:info:get": "@",
    "blazar:managers:get": ADMIN,
    "blazar:statements:get": READER,
    "blazar:charges:get": READER,
    "blazar:charges:correct": ADMIN,
    "blazar:price_lists:get": READER,
    "blazar:price_lists:post": ADMIN,
    "blazar:rules:get": READER,
    "blazar:rules:put": ADMIN,
    "blazar:rules:delete": ADMIN,
    "blazar:budgets:get": READER,
    "blazar:calendar:get": READER,
    "blazar:capacity:get": READER,
    "blazar:properties:get": READER,
    "blazar:calendar:get_names": ADMIN,
    "blazar:calendar:get_owners": ADMIN,
    "blazar:properties:get_private": ADMIN,
    "blazar:history:get": READER,
    "blazar:feeds:get": READER,
    "blazar:feeds:post": READER,
    "blazar:feeds:post_resource": ADMIN,
    "blazar:feeds:delete": READER,
    "blazar:subscriptions:get": READER,
    "blazar:subscriptions:post": MEMBER,
    "blazar:subscriptions:post_all": ADMIN,
    "blazar:subscriptions:update": MEMBER,
    "blazar:subscriptions:delete": MEMBER,
    "blazar:subscriptions:test": MEMBER,
    "blazar:subscriptions:replay": MEMBER,
    "blazar:subscriptions:mine": READER,
    "blazar:series:get": "rule:blazar:leases:get",
    "blazar:series:post": "rule:blazar:leases:post",
    "blazar:series:put": "rule:blazar:leases:put and rule:blazar:leases:post and rule:blazar:leases:delete",
    "blazar:series:delete": "rule:blazar:leases:delete",
    "blazar:leases:swap": "rule:blazar:leases:put",
    "blazar:leases:swap_to": "rule:blazar:oshosts:reallocate",
    "blazar:leases:split": "rule:blazar:leases:put and rule:blazar:leases:post",
    "blazar:leases:get_energy": "rule:blazar:leases:get",
    "blazar:leases:get_history": "rule:blazar:leases:get",
    "blazar:leases:merge": "rule:blazar:leases:put",
    "blazar:leases:merge_away": "rule:blazar:leases:delete",
    "blazar:leases:transfer": "rule:blazar:leases:put and rule:blazar:leases:delete",
    "blazar:transfers:get": "rule:project_reader_api",
    "blazar:transfers:accept": "rule:project_member_api and rule:blazar:leases:post",
    "blazar:transfers:decline": "rule:project_member_api",
    "blazar:maintenances:get": ADMIN,
    "blazar:maintenances:post": OF_HOSTS,
    "blazar:maintenances:update": OF_HOSTS,
    "blazar:maintenances:delete": OF_HOSTS,
    "blazar:maintenances:end": OF_HOSTS,
    "blazar:power:get": ADMIN,
    "blazar:power:put": ADMIN,
    "blazar:power:wake": ADMIN,
    "blazar:problems:get": ADMIN,
    "blazar:reports:get": READER,
    "blazar:reports:get_users": ADMIN,
    "blazar:problems:act": "rule:admin and rule:blazar:leases:delete and rule:blazar:oshosts:put",
    "blazar:availability:get": MEMBER,
}

THEIRS = {"project_id": "art", "user_id": "frida"}
FRIDA = Caller("frida", "art", ("member", "reader"))
VISITOR = Caller("diego", "art", ("guest",))
CURIE = Caller("curie", "physics", ("member", "reader"))


def policy(folder: Path, text: str = "", **options: object) -> Policy:
    """Return the policy of an operator with this policy file and these options of ``[oslo_policy]``."""
    file = folder / "policy.yaml"
    file.write_text(text, encoding="utf-8")
    conf = cfg.ConfigOpts()
    conf([], project="blazar", default_config_files=[], default_config_dirs=[])
    # A default would be one for every test that comes after.
    opts.set_defaults(conf)
    for name, value in {"policy_file": str(file), **options}.items():
        conf.set_override(name, value, group="oslo_policy")
    return Policy(conf, parts=all_parts())


def test_the_rules_have_the_names_and_defaults_that_policy_files_build_on():
    assert {rule.name: rule.check_str for rule in list_rules()} == DEFAULTS


@pytest.mark.parametrize(
    ("caller", "may"),
    [
        (FRIDA, {"get", "put", "delete"}),
        (Caller("pierre", "art", ("reader",)), {"get"}),
        (VISITOR, set()),
        (CURIE, set()),
        (Caller("root", "physics", ("admin",)), {"get", "put", "delete"}),
    ],
    ids=lambda value: value.user_id if isinstance(value, Caller) else "",
)
def test_a_lease_may_be_used_by_its_project_and_by_operators(tmp_path, caller, may):
    rules = policy(tmp_path)
    assert {verb for verb in ("get", "put", "delete") if rules.allows(f"blazar:leases:{verb}", caller, THEIRS)} == may


def test_a_policy_file_may_use_the_former_default_rule(tmp_path):
    rules = policy(tmp_path, '"blazar:leases:put": "rule:admin_or_owner"')
    assert rules.allows("blazar:leases:put", VISITOR, THEIRS)
    assert not rules.allows("blazar:leases:delete", VISITOR, THEIRS)
    assert not rules.allows("blazar:leases:put", CURIE, THEIRS)


def test_an_operator_may_keep_the_old_defaults(tmp_path):
    rules = policy(tmp_path, enforce_new_defaults=False)
    assert rules.allows("blazar:leases:put", VISITOR, THEIRS)
    assert not rules.allows("blazar:leases:put", CURIE, THEIRS)
    assert not rules.allows("blazar:oshosts:get", VISITOR)


NOBODYS = {"project_id": "", "user_id": ""}


@pytest.mark.parametrize("defaults", [True, False])
@pytest.mark.parametrize("target", [None, NOBODYS, {"project_id": "None", "user_id": ""}], ids=str)
def test_a_caller_without_a_project_matches_no_project(tmp_path, target, defaults):
    rules = policy(tmp_path, enforce_new_defaults=defaults)
    nobody = Caller("", "", ("member", "reader"))
    assert not any(rules.allows(f"blazar:leases:{verb}", nobody, target) for verb in ("get", "post", "put", "delete"))
    assert not rules.allows("blazar:leases:get", FRIDA, NOBODYS)


@pytest.mark.parametrize(("failures", "decides"), [(0, True), (4, True), (5, False)])
def test_a_decision_is_tried_again_if_python_fails_to_parse_a_word_of_the_rule(
    tmp_path, monkeypatch, failures, decides
):
    rules = policy(tmp_path)
    parse, left = ast.literal_eval, [failures]

    def fails_at_first(text):
        if left[0]:
            left[0] -= 1
            raise SystemError("AST constructor recursion depth mismatch (before=58, after=62)")
        return parse(text)

    monkeypatch.setattr(ast, "literal_eval", fails_at_first)
    curie = Caller("curie", "physics", ("member", "reader"))
    with nullcontext() if decides else pytest.raises(SystemError):
        assert rules.allows("blazar:leases:get", curie, {"project_id": "physics", "user_id": "curie"})


def test_an_operator_without_a_project_sees_all_leases_and_creates_none(world):
    class OfTheCloud:
        def authenticate(self, headers):
            return Caller("root", "", ("admin",))

    world.lease()
    http = create_app(world.manager, identity=OfTheCloud()).test_client()
    assert len(http.get("/v1/leases").json["leases"]) == 1
    refused = http.post("/v1/leases", json={"name": "x", "start_date": "now", "end_date": "2031-01-01 00:00"})
    assert (refused.status_code, "no project scope" in refused.json["error_message"]) == (403, True)


@pytest.fixture
def at_once(monkeypatch):
    """Look at the policy files with every request."""
    monkeypatch.setattr("blazar.api.http.policy.CHECK_INTERVAL", 0)


@pytest.mark.parametrize(
    ("text", "circle"),
    [
        ('"blazar:leases:post": "rule:blazar:series:post"', "blazar:leases:post refers to blazar:series:post refers"),
        ('"a": "not rule:b"\n"b": "role:x and (rule:a or @)"', "a refers to b refers to a"),
        ('"admin": "role:boss or rule:admin"', "admin refers to admin"),
    ],
)
def test_rules_that_refer_to_each_other_in_a_circle_are_told_at_the_start(tmp_path, text, circle):
    with pytest.raises(InvalidInput) as refused:
        policy(tmp_path, text)
    assert circle in refused.value.message


def test_a_rule_that_a_server_decides_is_a_503_while_the_server_is_away(world, tmp_path, caplog):
    class OfPhysics:
        def authenticate(self, headers):
            return CURIE

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        rules = policy(tmp_path, f'"blazar:leases:get": "http://127.0.0.1:{port}/%(user_id)s"')
        http = create_app(world.manager, identity=OfPhysics(), policy=rules).test_client()
        for version in ("1.0", "1.1"):
            answer = http.get("/v1/leases", headers={"OpenStack-API-Version": f"reservation {version}"})
            assert answer.status_code == 503, answer.text
            assert str(port) not in answer.text
    (told,) = errors(caplog)
    assert str(port) in told


READERS_MAY = '"blazar:leases:delete": "role:reader"'
READER_OF_ART = Caller("pierre", "art", ("reader",))


def errors(caplog):
    return [r.getMessage() for r in caplog.records if r.name == "blazar.api.http.policy" and r.levelname == "ERROR"]


def test_a_changed_policy_file_is_reloaded(tmp_path, at_once):
    rules = policy(tmp_path)
    assert not rules.allows("blazar:leases:delete", READER_OF_ART, THEIRS)
    (tmp_path / "policy.yaml").write_text(READERS_MAY, encoding="utf-8")
    assert rules.allows("blazar:leases:delete", READER_OF_ART, THEIRS)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda file: file.unlink(),
        lambda file: file.write_text("just a text", encoding="utf-8"),
        lambda file: file.write_text('"blazar:leases:get": 5', encoding="utf-8"),
        lambda file: file.write_text("a: [", encoding="utf-8"),
        lambda file: file.write_text('"blazar:leases:put": "rule:blazar:leases:swap"', encoding="utf-8"),
    ],
    ids=["removed", "text", "number", "cut off", "circle"],
)
def test_a_removed_or_invalid_policy_file_is_logged_once_and_the_rules_stay(tmp_path, at_once, caplog, spoil):
    rules = policy(tmp_path, READERS_MAY)
    file = tmp_path / "policy.yaml"
    spoil(file)
    for _ in range(3):
        assert rules.allows("blazar:leases:delete", READER_OF_ART, THEIRS)
        assert not rules.allows("blazar:leases:put", READER_OF_ART, THEIRS)
    (told,) = errors(caplog)
    assert str(file) in told
    assert "rules stay in force" in told
    file.write_text('"blazar:leases:put": "role:reader"', encoding="utf-8")
    assert rules.allows("blazar:leases:put", READER_OF_ART, THEIRS)
    assert not rules.allows("blazar:leases:delete", READER_OF_ART, THEIRS)


def test_a_missing_configured_policy_file_is_logged_once_and_the_defaults_apply(tmp_path, at_once, caplog):
    rules = policy(tmp_path, policy_file=str(tmp_path / "polcy.yaml"))
    for _ in range(3):
        assert rules.allows("blazar:leases:get", READER_OF_ART, THEIRS)
    (told,) = errors(caplog)
    assert told.endswith("polcy.yaml does not exist; the default rules apply")


def test_rules_in_json_that_are_not_read_are_logged_once(tmp_path, at_once, caplog):
    (tmp_path / "policy.json").write_text('{"blazar:leases:get": "!"}', encoding="utf-8")
    (tmp_path / "blazar.conf").write_text("[DEFAULT]\n", encoding="utf-8")
    conf = cfg.ConfigOpts()
    conf(["--config-file", str(tmp_path / "blazar.conf")], project="blazar")
    rules = Policy(conf, parts=all_parts())
    for _ in range(3):
        assert rules.allows("blazar:leases:get", READER_OF_ART, THEIRS)
    (told,) = errors(caplog)
    assert told.startswith(f"{tmp_path / 'policy.json'} is not read, so none of its rules apply; convert it")


def test_a_policy_file_in_json_is_read_as_yaml(tmp_path):
    (tmp_path / "policy.json").write_text('{"blazar:leases:get": "!"}', encoding="utf-8")
    rules = policy(tmp_path, policy_file=str(tmp_path / "policy.json"))
    assert not rules.allows("blazar:leases:get", READER_OF_ART, THEIRS)


def test_the_default_policy_file_may_be_missing(caplog):
    assert Policy(parts=all_parts()).allows("blazar:leases:get", READER_OF_ART, THEIRS)
    assert not errors(caplog)


def test_a_decision_is_remembered_for_the_same_caller_and_target_alone(tmp_path, monkeypatch):
    rules = policy(tmp_path)
    asked, enforce = [], oslo.Enforcer.enforce

    def note(enforcer, rule, target, creds, **more):
        asked.append((rule, dict(target), creds["user_id"]))
        return enforce(enforcer, rule, target, creds, **more)

    monkeypatch.setattr(oslo.Enforcer, "enforce", note)
    for _ in range(3):
        assert rules.allows("blazar:leases:get", FRIDA, THEIRS)
        assert not rules.allows("blazar:leases:get", VISITOR, {"project_id": "elsewhere", "user_id": "x"})
        assert not rules.allows("blazar:leases:get", CURIE, THEIRS)
        assert not rules.allows("admin", FRIDA, THEIRS)
    assert len(asked) == 4


def test_what_a_server_may_decide_is_asked_each_time(tmp_path, monkeypatch):
    rules = policy(tmp_path, '"blazar:leases:get": "rule:admin or http://127.0.0.1:1/decide"')
    asked, enforce = [], oslo.Enforcer.enforce

    def note(enforcer, rule, target, creds, **more):
        asked.append(rule)
        return enforce(enforcer, rule, target, creds, **more)

    monkeypatch.setattr(oslo.Enforcer, "enforce", note)
    for _ in range(3):
        assert rules.allows("blazar:leases:post", FRIDA, THEIRS)
    assert len(asked) == 3


def test_a_caller_with_a_credential_that_is_a_list_is_decided_each_time(tmp_path):
    rules = policy(tmp_path)
    listed = Caller("frida", "art", ("member", "reader"), {"groups": ["a", "b"]})
    assert rules.allows("blazar:leases:get", listed, THEIRS) is rules.allows("blazar:leases:get", listed, THEIRS)
