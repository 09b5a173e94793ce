# SPDX-License-Identifier: Apache-2.0
"""Fingerprints of options and policies, by which the journal tells that they have changed.

None are taken of secrets, nor of values that belong to one machine.
"""

from __future__ import annotations

import hashlib

from oslo_config import cfg
from oslo_policy import policy

from blazar.cmd.options import GROUPS

OF_MACHINES = frozenset({"monitoring", "database"})
"""Groups of options that each machine may have for itself."""
OF_A_MACHINE = frozenset({"host", "port", "log_exchange"})
"""Options without a group that each machine may have for itself."""


def take_fingerprints(conf: cfg.ConfigOpts) -> dict[str, str]:
    """Return a fingerprint of each option that differs from its default, by its name, and of each rule that is set."""
    found: dict[str, str] = {}
    for group, options in GROUPS.items():
        if group in OF_MACHINES:
            continue
        values = conf if group == "DEFAULT" else conf[group]
        for option in options:
            value = values[option.dest]
            if option.secret or value == option.default or (group == "DEFAULT" and option.name in OF_A_MACHINE):
                continue
            found[f"[{group}] {option.name}"] = _take_fingerprint(str(value))
    return found | _take_policies(conf)


def _take_policies(conf: cfg.ConfigOpts) -> dict[str, str]:
    """Return a fingerprint of each rule of the policy files; one of all that says so, if they cannot be read."""
    enforcer = policy.Enforcer(conf)
    enforcer.suppress_deprecation_warnings = True
    try:
        enforcer.load_rules()
    except (AttributeError, OSError, TypeError, ValueError):
        # Exceptions of the parsers of the library. Processes that serve the API say what is wrong.
        return {"policy file": "invalid"}
    return {f"policy {name}": _take_fingerprint(str(rule.check_str)) for name, rule in enforcer.file_rules.items()}


def _take_fingerprint(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()[:8]
