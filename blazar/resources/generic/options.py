# SPDX-License-Identifier: Apache-2.0
"""The options of generic resources."""

from __future__ import annotations

from oslo_config import cfg

from blazar.clouds.hooks.options import HOOK_OPTIONS, SECTION

GENERIC_OPTIONS: list[cfg.Opt] = [
    *HOOK_OPTIONS,
    cfg.StrOpt(
        "before_end",
        default="",
        choices=[
            ("", "the same as notification"),
            ("none", "nothing"),
            ("notification", "a notification, and a call of the hook of each resource"),
            ("default", "the same as notification"),
            ("email", "the same as notification; a listener may send the mail"),
        ],
        help="Action before the end of a reservation whose request sets no action, or 'default'.",
    ),
]

__all__ = ["GENERIC_OPTIONS", "SECTION"]
