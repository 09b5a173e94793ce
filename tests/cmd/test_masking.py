# SPDX-License-Identifier: Apache-2.0
"""What libraries write to the log about the headers of their calls."""

from __future__ import annotations

import io
import logging

import pytest

from blazar.cmd import logs


@pytest.fixture
def written(monkeypatch):
    """A log with one handler; return what is written to it."""
    stream = io.StringIO()
    root = logging.getLogger()
    handler = logging.StreamHandler(stream)
    monkeypatch.setattr(root, "handlers", [handler])
    logs.add_filters()
    logs.add_filters()
    assert len(handler.filters) == 4
    return stream


@pytest.mark.parametrize(
    ("text", "arguments", "left"),
    [
        ("RESP: [200] Date: x Set-Cookie: a=secret; Path=/", (), "RESP: [200] Date: x Set-Cookie: ***"),
        ('REQ: curl -H "Cookie: a=secret" -H "Accept: */*"', (), 'REQ: curl -H "Cookie: ***" -H "Accept: */*"'),
        ("headers: %s", ({"set-cookie": "secret", "x": "y"},), "headers: {'set-cookie': ***, 'x': 'y'}"),
        ("no biscuits: %s", ("a",), "no biscuits: a"),
    ],
)
def test_cookies_are_masked_in_what_libraries_write(written, text, arguments, left):
    logger = logging.getLogger("keystoneauth.session")
    logger.setLevel(logging.DEBUG)
    logger.debug(text, *arguments)
    assert written.getvalue().strip() == left
