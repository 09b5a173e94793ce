# SPDX-License-Identifier: Apache-2.0
"""What the files of a configuration say, before any option is looked at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from oslo_config import cfg


def files(conf: cfg.ConfigOpts) -> list[str]:
    """Return the files that were read, in order of increasing precedence."""
    folders = [Path(folder).expanduser() for folder in conf.config_dir or []]
    return [*(conf.config_file or []), *(str(file) for folder in folders for file in sorted(folder.glob("*.conf")))]


def sections(file: str) -> dict[str, dict[str, list[str]]]:
    """Return the values of each option in a file, by section."""
    sections: dict[str, dict[str, list[str]]] = {}
    cfg.ConfigParser(file, sections).parse()
    return sections


def names(group: str, option: cfg.Opt) -> Iterator[tuple[str, str]]:
    """Yield the group and the name of an option, and those that it had before."""
    yield group, option.dest
    yield group, option.name
    for old in option.deprecated_opts:
        yield old.group or group, (old.name or option.name).replace("-", "_")
