# SPDX-License-Identifier: Apache-2.0
"""Which hooks may be called is what ``[generic]`` of ``blazar.conf`` says, and ``[webhooks]`` for subscriptions."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest

from blazar.clouds.hooks.http import HttpHooks
from blazar.clouds.webhooks import HttpWebhooks
from blazar.cmd import assemble
from blazar.model.base.clock import SystemClock
from blazar.model.base.errors import InvalidInput

SECRET = f"master_secrets = {'s' * 40}"


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("allowed", "others", "url"),
    [
        (["allowed_hosts = lab.example"], ["allowed_hosts = other.example"], "https://lab.example/x"),
        (["allowed_networks = 192.0.2.0/24"], ["allowed_networks = 198.51.100.0/24"], "https://192.0.2.7/x"),
        (["allow_http = true", "allowed_hosts = lab.example"], ["allowed_hosts = lab.example"], "http://lab.example/x"),
    ],
)
def test_a_hook_is_called_where_the_file_allows_it(load, allowed, others, url):
    HttpHooks.configured(load("[generic]", SECRET, *allowed)).check_hook(url)
    with pytest.raises(InvalidInput):
        HttpHooks.configured(load("[generic]", SECRET, *others)).check_hook(url)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("allowed", "others", "url", "trusted"),
    [
        (["allowed_hosts = chat.example"], ["allowed_hosts = other.example"], "https://chat.example/x", True),
        (["allowed_networks = 10.2.0.0/16"], ["allowed_networks = 10.3.0.0/16"], "https://10.2.0.7/x", True),
        (["member_networks = 10.2.0.0/16"], ["allowed_networks = 10.2.0.0/16"], "https://10.2.0.7/x", False),
    ],
)
def test_a_web_hook_is_sent_where_the_file_allows_it(load, allowed, others, url, trusted):
    HttpWebhooks.configured(load("[webhooks]", SECRET, *allowed)).check_target(url, trusted=trusted)
    with pytest.raises(InvalidInput):
        HttpWebhooks.configured(load("[webhooks]", SECRET, *others)).check_target(url, trusted=trusted)


def test_web_hooks_need_a_master_secret_that_is_long_enough(load):
    with pytest.raises(InvalidInput, match="master_secrets is not set"):
        HttpWebhooks.configured(load("[webhooks]")).check_target("https://chat.example/x", trusted=True)
    assert HttpWebhooks.configured(load("[webhooks]", SECRET)).enabled
    with pytest.raises(InvalidInput, match=r"\[webhooks\] master_secrets: number 1 has 3 characters") as refused:
        HttpWebhooks.configured(load("[webhooks]", "master_secrets = abc"))
    assert "abc" not in refused.value.message


def test_messages_are_dated_by_the_clock_of_the_service_and_not_of_the_machine(load):
    there = SystemClock()
    conf = load("[webhooks]", SECRET, "[generic]", SECRET)
    off = SimpleNamespace(now=lambda: there.now() + timedelta(hours=1))
    for sender in (assemble.webhooks(conf, off), HttpHooks.configured(conf, off)):
        assert isinstance(sender, HttpWebhooks | HttpHooks)
        assert abs(sender._now() - off.now().timestamp()) < 60
    assert abs(HttpWebhooks.configured(conf)._now() - there.now().timestamp()) < 60


@pytest.mark.parametrize("trusted", [True, False])
def test_a_refusal_names_no_option_that_there_is_not(load, trusted):
    with pytest.raises(InvalidInput) as refused:
        HttpWebhooks.configured(load("[webhooks]", SECRET)).check_target("http://chat.example/", trusted=trusted)
    assert refused.value.message == "url begins with http://; give an https:// URL"
