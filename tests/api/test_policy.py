"""Who may do what: the rules that operators know, by the names and defaults that their policy files build on."""

from __future__ import annotations

from pathlib import Path

import pytest
from oslo_config import cfg
from oslo_policy import opts

from blazar.api.identity import Caller
from blazar.api.policy import Policy, list_rules

ADMIN = "rule:admin"
READER = "rule:project_reader_or_admin"
MEMBER = "rule:project_member_or_admin"

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
    return Policy(conf)


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
def test_a_lease_is_for_its_project_and_for_operators(tmp_path, caller, may):
    rules = policy(tmp_path)
    assert {verb for verb in ("get", "put", "delete") if rules.allows(f"blazar:leases:{verb}", caller, THEIRS)} == may


def test_a_policy_file_may_use_the_rule_that_once_was_the_default(tmp_path):
    rules = policy(tmp_path, '"blazar:leases:put": "rule:admin_or_owner"')
    assert rules.allows("blazar:leases:put", VISITOR, THEIRS)
    assert not rules.allows("blazar:leases:delete", VISITOR, THEIRS)
    assert not rules.allows("blazar:leases:put", CURIE, THEIRS)


def test_an_operator_may_keep_the_old_defaults(tmp_path):
    rules = policy(tmp_path, enforce_new_defaults=False)
    assert rules.allows("blazar:leases:put", VISITOR, THEIRS)
    assert not rules.allows("blazar:leases:put", CURIE, THEIRS)
    assert not rules.allows("blazar:oshosts:get", VISITOR)
