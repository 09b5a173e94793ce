# SPDX-License-Identifier: Apache-2.0
"""Which hooks may be called is what ``[generic]`` of ``blazar.conf`` says."""

from __future__ import annotations

import pytest

from blazar.clouds.hooks.http import HttpHooks
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
