# SPDX-License-Identifier: Apache-2.0
"""Signatures of hooks, against a verifier that was written from the specification alone."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blazar.clouds.outgoing import signing
from tests.clouds.receivers import verified

IDS = st.text(
    st.characters(codec="ascii", exclude_characters=". ", categories=("L", "N", "P")), min_size=1, max_size=120
)
MASTERS = st.text(min_size=32, max_size=60).filter(lambda text: text.isprintable())
TIMES = st.integers(1, 2**33)


@given(master=MASTERS, thing_id=IDS, message_id=IDS, timestamp=TIMES, body=st.binary(max_size=300))
def test_a_receiver_verifies_every_message_with_the_secret_that_it_was_given(
    master, thing_id, message_id, timestamp, body
):
    key = signing.derive_secret(master, thing_id)
    (secret,) = signing.secrets_of([master], thing_id)
    headers = signing.sign([key], message_id=message_id, timestamp=timestamp, body=body)
    assert verified(secret, headers, body, now=timestamp + 10)
    assert len(base64.b64decode(secret.removeprefix("whsec_"))) >= 24


@given(data=st.data(), body=st.binary(min_size=1, max_size=100), timestamp=TIMES)
def test_whatever_is_changed_on_the_way_the_signature_no_longer_fits(data, body, timestamp):
    key = signing.derive_secret("m" * 32, "thing")
    sent = dict(signing.sign([key], message_id="r:t:start:1", timestamp=timestamp, body=body))
    where = data.draw(st.integers(0, len(body) - 1))
    forged = body[:where] + bytes([body[where] ^ data.draw(st.integers(1, 255))]) + body[where + 1 :]
    secret = signing.secret_text(key)
    assert not verified(secret, sent, forged, now=timestamp)
    assert not verified(secret, {**sent, "webhook-id": "r:t:start:2"}, body, now=timestamp)
    assert not verified(secret, {**sent, "webhook-timestamp": str(timestamp + 1)}, body, now=timestamp)


@given(one=IDS, other=IDS, master=MASTERS)
def test_no_receiver_can_forge_a_message_to_another(one, other, master):
    keys = {signing.derive_secret(master, each) for each in (one, other)}
    assert len(keys) == len({one, other})


def test_while_a_master_secret_is_replaced_receivers_with_the_old_and_with_the_new_one_verify():
    old, new = "o" * 32, "n" * 32
    keys = [signing.derive_secret(master, "thing") for master in (new, old)]
    headers = signing.sign(keys, message_id="r:t:end:1", timestamp=1_900_000_000, body=b"{}")
    for secret in signing.secrets_of([new, old], "thing"):
        assert verified(secret, headers, b"{}", now=1_900_000_000)
    (stranger,) = signing.secrets_of(["x" * 32], "thing")
    assert not verified(stranger, headers, b"{}", now=1_900_000_000)


def test_the_example_of_the_specification_has_this_signature():
    # The secret, id, time and payload that the reference libraries of Standard Webhooks test with.
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    headers = signing.sign(
        [key], message_id="msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp=1614265330, body=b'{"test": 2432232314}'
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_an_id_that_would_part_the_signed_text_is_a_bug():
    with pytest.raises(ValueError, match="full stop"):
        signing.sign([b"k"], message_id="a.b", timestamp=1, body=b"")
