# SPDX-License-Identifier: Apache-2.0
"""Writes client/man/blazar.1, the manual of the ``blazar`` command, from its parsers.

``make client-manual`` runs it; a test holds that the page is up to date.
"""

from __future__ import annotations

import argparse
import inspect
import os
from collections.abc import Iterable, Iterator

from blazarclient import shell

_OWN = ("positional arguments", "options")
"""Groups of options that are described with each command; the others are those of formats."""

_SECTIONS = """\
.SH OUTPUT
Commands that show something take
.BR \\-f " or " \\-\\-format
with
.BR table ", " json ", " yaml ", " csv " or " value ,
and
.B \\-c
for each column that is wanted. Data goes to stdout, sentences for people to stderr.
Dates are in the zone of the user in tables, and in UTC in other formats.
.SH TIMES
2026\\-12\\-01 09:00, 2026\\-12\\-01T09:00:00Z, now, tomorrow 9:00, friday 14:00, +3d.
Without an offset they are in the zone of
.BR TZ ,
of the machine, or of
.BR \\-\\-timezone .
Lengths of time are 3d12h, 90m, 2w or P3DT12H.
.SH EXIT STATUS
.TS
tab(|);
l l.
0|done
1|refused or failed for another reason
2|the command is written wrongly
3|there is no such lease or host, or several have the name
4|not logged in, or not allowed
5|no room, or a limit of the project is reached
6|it does not go together with the present state
7|the service, or the way to it, does not answer
8|the time limit of waiting is over
9|the connection was lost; whether it was booked is not known
130|Ctrl\\-C
.TE
.SH ENVIRONMENT
.TP
.B OS_CLOUD
the cloud of clouds.yaml
.TP
.BR OS_AUTH_URL ", " OS_USERNAME ", " OS_PASSWORD ", " OS_PROJECT_NAME " and others"
the login, as in the openrc file of a project
.TP
.BR OS_ENDPOINT ", " OS_TOKEN
a service without Keystone, and who asks
.TP
.B TZ
the zone of times
.TP
.B NO_COLOR
no colors in the calendar
.TP
.BR PAGER ", " LESS
what shows a calendar that is longer than the screen; with no text, nothing does
.TP
.B BLAZAR_FLAT_JSON
values in JSON are texts, as the existing client has them
.SH FILES
.I ~/.config/openstack/clouds.yaml
.SH EXAMPLES
.EX
blazar find \\-\\-host min=2 \\-\\-duration 3d
blazar lease create training \\-\\-physical\\-reservation min=2 \\-\\-wait
blazar lease extend training \\-\\-by 1d
blazar calendar \\-\\-requirement gpu=A100 \\-\\-property gpu
.EE
.SH SEE ALSO
.BR openstack (1)
"""


def page() -> str:
    """Return the manual in the language of man."""
    # The defaults that help texts show are not those of who runs this.
    for name in [name for name in os.environ if name.startswith("OS_")]:
        del os.environ[name]
    app = shell.BlazarShell()
    lines = [
        "'\\\" t",
        ".TH BLAZAR 1",
        ".SH NAME",
        "blazar \\- reserve resources of an OpenStack cloud, now or for later",
        ".SH SYNOPSIS",
        ".B blazar",
        ".RI [ option ...]",
        ".I command",
        ".RI [ argument ...]",
        ".SH DESCRIPTION",
        "Books compute hosts, capacity for servers, and addresses of an OpenStack cloud for a time, and shows",
        "when they are free. The words of a command may have hyphens between them: lease\\-list.",
        ".SH COMMANDS",
    ]
    for name, entry in sorted(app.command_manager):
        command = entry.load()
        lines += _command(name, command, command(app, None).get_parser(f"blazar {name}"))
    lines += [".SH OPTIONS", *_options(app.parser._get_optional_actions())]
    return "\n".join(lines) + "\n" + _SECTIONS


def _command(name: str, command: type, parser: argparse.ArgumentParser) -> Iterator[str]:
    actions = [action for group in parser._action_groups if group.title in _OWN for action in group._group_actions]
    words = [_argument(action) for action in actions if not action.option_strings]
    yield ".SS " + _escaped(" ".join([name, *words, "[options]"]))
    summary, _, rest = (inspect.getdoc(command) or "").partition("\n")
    yield _escaped(summary.rstrip(".") + ".")
    if told := " ".join(rest.split()):
        yield ".PP"
        yield _escaped(told)
    yield from _options(action for action in actions if action.dest != "help")


def _argument(action: argparse.Action) -> str:
    name = str(action.metavar or f"<{action.dest}>")
    return f"[{name} ...]" if action.nargs == "*" else f"{name} ..." if action.nargs == "+" else name


def _options(actions: Iterable[argparse.Action]) -> Iterator[str]:
    for action in actions:
        if action.help == argparse.SUPPRESS:
            continue
        value = "" if action.nargs == 0 else " " + _value(action)
        flags = ", ".join(action.option_strings)
        yield ".TP"
        yield f".B {_escaped(flags + value)}" if flags else f".I {_escaped(value.strip())}"
        yield _escaped(" ".join(str(action.help or "").replace("%%", "%").split())) or "\\&"


def _value(action: argparse.Action) -> str:
    if action.choices and not action.metavar:
        return "{" + ",".join(map(str, action.choices)) + "}"
    name = action.metavar or f"<{action.dest}>"
    return name if isinstance(name, str) else " ".join(name)


def _escaped(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped


if __name__ == "__main__":
    print(page(), end="")
