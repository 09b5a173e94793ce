# SPDX-License-Identifier: Apache-2.0
"""Reservations of instances and of flavors."""

from __future__ import annotations

from tests.api.bad_requests.builders import (
    INSTANCE_RESERVATION,
    flavored,
    flavored_without,
    post,
    reservation,
    servers,
    servers_without,
)

INSTANCES = [
    *(
        post(f"servers without {key}", servers_without(key), f"Missing parameter {key}")
        for key in INSTANCE_RESERVATION
        if key != "resource_type"
    ),
    *(
        post(f"servers, {key} {v!r}", servers(**{key: v}), key)
        for key in ("amount", "vcpus", "memory_mb", "disk_gb")
        for v in (0, -1, "", "foo", "1.5", 1.5, None, True, [], {}, 2**31, 2**70, "9" * 30, "-1", "٣")
        if (key, v) != ("disk_gb", 0)
    ),
    *(
        post(f"servers, affinity {v!r}", servers(affinity=v), "affinity")
        for v in (2, -1, "yess", "maybe", [], {}, 1.0, "soft-affinity")
    ),
    *(
        post(f"servers, {key} {v!r}", servers(**{key: v}), "before_end")
        for key in ("before_end", "before_end_action")
        for v in ("migration", "email", None, 1, [])
    ),
    *(
        post(f"servers, requirement {v!r}"[:60], servers(resource_properties=v), "resource_properties")
        for v in ("x", "{}", 5, '["==", "$colour", "red"]', '["and"]', {"a": 1})
    ),
    post("more servers than there is room for", servers(amount=2**31 - 1), "Not enough hosts", 409),
    post("a server larger than any host", servers(vcpus=2**31 - 1), "0 instances fit", 409),
    post("servers apart on more hosts than there are", servers(amount=99, affinity=False), "Not enough", 409),
    *(
        post(f"a flavor's servers without {key}", flavored_without(key), f"Missing parameter {key}")
        for key in ("flavor_id", "amount", "affinity")
    ),
    *(
        post(f"a flavor's servers, amount {v!r}", flavored(amount=v), "amount")
        for v in (0, -1, "", "foo", 1.5, None, True, [], {}, 2**31, 2**70, "9" * 30, "٣")
    ),
    *(
        post(f"a flavor {v!r}"[:40], flavored(flavor_id=v), "flavor_id")
        for v in (None, "", True, 1.5, [], {}, "a/b", "..", "../servers", "a?b", "a\nb", "f" * 256)
    ),
    *(post(f"a flavor {v!r}", flavored(flavor_id=v), "there is no flavor", 404) for v in ("foreign", "none", 77, -1)),
    *(
        post(f"a flavor that is {flavor}", flavored(flavor_id=flavor), says)
        for flavor, says in (
            ("nothing", "take nothing"),
            ("grouped", "resources1:VGPU"),
            ("undecided", "trait:HW_X"),
            ("endless", "resources:VCPU"),
            ("negative", "resources:VCPU"),
            ("ours", "the flavor of a reservation"),
        )
    ),
    post("a flavor larger than any host", flavored(flavor_id="huge"), "0 instances fit", 409),
    post("a flavor with a trait that no host has", flavored(flavor_id="rare"), "0 hosts match", 409),
    post("more of a flavor than there is room for", flavored(amount=2**31 - 1), "Not enough hosts", 409),
    post("a flavor apart on more hosts than there are", flavored(amount=99, affinity=False), "Not enough", 409),
    *(post(f"a flavor, affinity {v!r}", flavored(affinity=v), "affinity") for v in (2, "yess", [], {})),
    *(
        post(f"a flavor, requirement {v!r}", flavored(resource_properties=v), "resource_properties")
        for v in ("x", '[">", "$vcpus", "1"]', 5, {"a": 1})
    ),
    post("a flavor that moves out", flavored(before_end="migration"), "'migration'"),
    post("servers with a host's keys only", reservation(resource_type="virtual:instance"), "Missing parameter amount"),
]
