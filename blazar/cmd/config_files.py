# SPDX-License-Identifier: Apache-2.0
"""What the files of a configuration say, before any option is looked at."""

from __future__ import annotations

import argparse
import codecs
from collections.abc import Iterable, Iterator
from pathlib import Path

from oslo_config import cfg

WITHOUT_MARK = "save it as UTF-8 without BOM"


def files(conf: cfg.ConfigOpts) -> list[str]:
    """Return the files that were read, in order of increasing precedence."""
    folders = [Path(folder).expanduser() for folder in conf.config_dir or []]
    return [*(conf.config_file or []), *(str(file) for folder in folders for file in sorted(folder.glob("*.conf")))]


def list_files(conf: cfg.ConfigOpts, arguments: list[str]) -> list[str]:
    """Return the files that were to be read, of a configuration that could not be."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for option in ("--config-file", "--config-dir"):
        parser.add_argument(option, action="append")
    named, _ = parser.parse_known_args(arguments)
    folders = [Path(folder).expanduser() for folder in named.config_dir or conf.default_config_dirs]
    return [
        *(named.config_file or conf.default_config_files),
        *(str(file) for folder in folders for file in sorted(folder.glob("*.conf"))),
    ]


def explain_encoding(files: Iterable[str]) -> str | None:
    """Return which file is in another encoding than UTF-8, or has a mark before its first line; None: none is."""
    for file in files:
        path = Path(file).expanduser()
        try:
            text = path.read_bytes()
        except OSError:
            # Not what is asked here; who reads it says so.
            continue
        if text.startswith(codecs.BOM_UTF8):
            return f"{path} begins with a byte order mark (BOM), as editors on Windows add it; {WITHOUT_MARK}"
        if text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return f"{path} is in UTF-16, as editors on Windows save it; {WITHOUT_MARK}"
        try:
            text.decode("utf-8")
        except UnicodeDecodeError as error:
            line = text.count(b"\n", 0, error.start) + 1
            return f"{path} is not in UTF-8, see line {line}; save it as UTF-8"
    return None


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


def list_names(lists: Iterable[tuple[str, list[cfg.Opt]]]) -> list[tuple[str, str]]:
    """Return the group and each name of options that are listed by group."""
    return [name for group, options in lists for option in options for name in names(group, option)]


def list_values(conf: cfg.ConfigOpts) -> list[tuple[str, str]]:
    """Return the group and name of each value in the files, in their order."""
    return [(group, name) for file in files(conf) for group, values in sections(file).items() for name in values]
