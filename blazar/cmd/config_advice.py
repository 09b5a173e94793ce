# SPDX-License-Identifier: Apache-2.0
"""What to do about options of a file that nothing uses, or that have another name now."""

from __future__ import annotations

import difflib

from oslo_config import cfg

from blazar.calendar.placement import Strategy
from blazar.cmd.config import list_options
from blazar.cmd.config_files import files, sections
from blazar.cmd.options import GROUPS
from blazar.resources.hosts.options import read_strategy


def advise(leftover: str) -> str:
    """Return what to do about an option that nothing uses: the name that is close to it, if there is one."""
    group, _, name = leftover.removeprefix("[").partition("] ")
    every = set(list_options())
    theirs = {other for section, other in every if section == group}
    if near := difflib.get_close_matches(name, theirs, n=1, cutoff=0.8):
        return f"{leftover} is not used; is {near[0]} meant?"
    if elsewhere := sorted({section for section, other in every if other == name}):
        return f"{leftover} is not used; the option is in [{elsewhere[0]}]"
    return f"{leftover} is not used; correct its name, or take the line out if nothing depends on it"


def list_renamed(conf: cfg.ConfigOpts) -> list[str]:
    """Return a sentence for each option that the configuration files set by an older name, which still works."""
    older = {
        (old.group or group, (old.name or option.name).replace("-", "_")): (group, option.name)
        for group, options in GROUPS.items()
        for option in options
        for old in option.deprecated_opts
    }
    return [
        f"[{group}] {name} is now called [{older[group, name][0]}] {older[group, name][1]}"
        for file in files(conf)
        for group, values in sections(file).items()
        for name in values
        if (group, name) in older
    ]


def list_ways_of_telling(conf: cfg.ConfigOpts) -> list[tuple[str, str]]:
    """Return how users can be notified, and for each way that is not configured the option that it needs."""
    ways = (
        (
            "Web hooks",
            conf.webhooks.master_secrets,
            "none are sent, and nobody can subscribe: [webhooks] master_secrets",
        ),
        ("Mail", conf.mail.smtp_url, "none is sent, and nobody can subscribe: [mail] smtp_url"),
    )
    return [(way, "" if is_set else f"{words} is not set") for way, is_set, words in ways]


def list_contradictions(conf: cfg.ConfigOpts) -> list[str]:
    """Return a sentence for each option that works against another one."""
    hosts = conf["physical:host"]
    if conf.power.mode == "off" or read_strategy(conf, hosts_sleep=True) is Strategy.COMPACT:
        return []
    option = "randomize_host_selection is true" if hosts.randomize_host_selection else "placement is roomy"
    return [f"[power] mode is {conf.power.mode}, and [physical:host] {option}, which leaves few hosts to sleep"]
