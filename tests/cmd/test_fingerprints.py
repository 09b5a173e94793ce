# SPDX-License-Identifier: Apache-2.0
"""What is compared of the configuration at each start: neither secrets nor what belongs to one machine."""

from __future__ import annotations

from blazar.cmd.fingerprints import take_fingerprints
from blazar.cmd.options import GROUPS


def test_options_that_are_set_are_compared_and_a_default_that_is_written_down_is_none(load):
    assert take_fingerprints(load()) == {}
    (only,) = take_fingerprints(load("[manager]", "rpc_threads = 7")).items()
    assert only[0] == "[manager] rpc_threads"
    other = take_fingerprints(load("[manager]", "rpc_threads = 8"))
    assert other.keys() == {only[0]}
    assert other != dict([only])
    same = GROUPS["manager"]
    default = next(option.default for option in same if option.name == "rpc_threads")
    assert take_fingerprints(load("[manager]", f"rpc_threads = {default}")) == {}


def test_neither_secrets_nor_what_a_machine_has_for_itself_are_compared(load):
    conf = load(
        *("[DEFAULT]", "host = ctl1", "port = 99", "os_admin_password = geheim"),
        *("[monitoring]", "listen = 127.0.0.1:99", "token = geheim"),
        *("[mail]", "smtp_url = smtp://user:geheim@mail.example"),
        *("[webhooks]", "master_secrets = 0123456789abcdef0123456789abcdef"),
    )
    assert take_fingerprints(conf) == {}


def test_rules_of_a_policy_file_are_compared_each_by_its_name(load, tmp_path):
    policies = tmp_path / "policy.yaml"
    lines = ("[oslo_policy]", f"policy_file = {policies}")
    policies.write_text('"blazar:leases:get": "role:reader"\n', encoding="utf-8")
    before = take_fingerprints(load(*lines))
    assert before.keys() == {"policy blazar:leases:get"}
    policies.write_text('"blazar:leases:get": "role:member"\n"blazar:leases:post": "!"\n', encoding="utf-8")
    after = take_fingerprints(load(*lines))
    assert after.keys() == {"policy blazar:leases:get", "policy blazar:leases:post"}
    assert before["policy blazar:leases:get"] != after["policy blazar:leases:get"]
    policies.write_text("{", encoding="utf-8")
    assert take_fingerprints(load(*lines)) == {"policy file": "invalid"}
