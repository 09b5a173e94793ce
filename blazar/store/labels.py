# SPDX-License-Identifier: Apache-2.0
"""Labels: what users see of a resource whose name is for operators.

A label is random, so that it tells neither the id nor the order of registration, and stays with the resource until that
is unregistered. A resource that comes back gets another one.
"""

from __future__ import annotations

import secrets

from blazar.model.resource import ResourceKind

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Base 32 without letters that are easily mistaken for others."""

_LENGTH = 6


def new_label(kind: ResourceKind) -> str:
    """Return a label such as ``h-4kq2mz``. It may be taken: the database refuses it then."""
    return f"{kind[0]}-" + "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))
