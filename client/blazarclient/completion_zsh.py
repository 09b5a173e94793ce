# SPDX-License-Identifier: Apache-2.0
"""The script with which zsh completes commands, their options, and the values that an option can have."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_SCRIPT = r"""#compdef @NAME@
# Put this file into a folder of fpath, as _@NAME@.

_@FUNCTION@() {
    local -A summaries=(
@SUMMARIES@
    )
    # Options before the command that have a value.
    local -a valued=(@VALUED@)
    local -a options=(
@OPTIONS@
    )
    local name="" word="" skip="" at=2
    while (( at < CURRENT )); do
        word="${words[at]}"
        if [[ -n $skip ]]; then
            skip=""
        elif [[ $word == -* ]]; then
            (( ${valued[(Ie)$word]} )) && skip=yes
        else
            name="${name:+$name }$word"
        fi
        if [[ -n $name && -n ${summaries[$name]-} ]]; then
            # A command is complete unless the next word makes a longer one.
            if (( at + 1 < CURRENT )) && [[ -n ${summaries[$name ${words[at+1]}]-} ]]; then
                (( at += 1 ))
                name="$name ${words[at]}"
            fi
            words=("$name" "${(@)words[at+1,-1]}")
            (( CURRENT -= at - 1 ))
            _@FUNCTION@_options "$name"
            return
        fi
        (( at += 1 ))
    done
    if [[ -n $skip ]]; then
        _default
        return
    fi
    if [[ ${words[CURRENT]} == -* ]]; then
        _describe -o option options
        return
    fi
    local -A following=()
    local key="" rest=""
    for key in ${(k)summaries}; do
        [[ -z $name || $key == "$name "* ]] || continue
        rest="${key#$name}"
        rest="${rest# }"
        if [[ $rest == *" "* ]]; then
            : ${following[${rest%% *}]=}
        else
            following[$rest]="${summaries[$key]}"
        fi
    done
    local -a commands=()
    for key in ${(ko)following}; do
        commands+=("$key${following[$key]:+:${following[$key]}}")
    done
    _describe command commands
}

_@FUNCTION@_options() {
    local -a specs=()
    case "${1// /-}" in
@CASES@
    esac
    _arguments -S $specs '*:argument:_default'
}

# Also where it is sourced, without fpath.
if [[ ${zsh_eval_context[-1]-} == loadautofunc ]]; then
    _@FUNCTION@ "$@"
elif (( ${+functions[compdef]} )); then
    compdef _@FUNCTION@ @NAME@
fi
"""


@dataclass(frozen=True)
class Command:
    """A command: what it does, and its options."""

    summary: str
    options: Sequence[argparse.Action]


def script(name: str, options: Sequence[argparse.Action], commands: Mapping[str, Command]) -> str:
    """Return the script for a program of this name, with options before the command, and commands."""
    both = {**commands, **{words.replace(" ", "-"): command for words, command in commands.items()}}
    parts = {
        "NAME": name,
        "FUNCTION": name.replace("-", "_"),
        "SUMMARIES": _lines(8, (f"{_quoted(words)} {_quoted(_plain(c.summary))}" for words, c in sorted(both.items()))),
        "VALUED": " ".join(flag for option in options if _has_value(option) for flag in option.option_strings),
        "OPTIONS": _lines(
            8, (_quoted(f"{flag}:{_help(option)}") for option in options for flag in option.option_strings)
        ),
        "CASES": "\n".join(_case(words, command.options) for words, command in sorted(commands.items())),
    }
    text = _SCRIPT
    for key, value in parts.items():
        text = text.replace(f"@{key}@", value)
    return text


def _lines(indent: int, lines: Iterable[str]) -> str:
    return "\n".join(" " * indent + line for line in lines)


def _case(words: str, options: Sequence[argparse.Action]) -> str:
    specs = _lines(16, (_quoted(_spec(flag, option)) for option in options for flag in option.option_strings))
    return f"        {words.replace(' ', '-')})\n            specs=(\n{specs}\n            )\n            ;;"


def _spec(flag: str, option: argparse.Action) -> str:
    """Return an option as ``_arguments`` takes it."""
    repeated = "*" if isinstance(option, argparse._AppendAction) else ""
    spec = f"{repeated}{flag}[{_help(option)}]"
    if not _has_value(option):
        return spec
    label = str(option.metavar or option.dest).strip("<>")
    message = "".join(c if c.isalnum() or c in " -_" else " " for c in label).strip() or "value"
    values = f"({' '.join(map(str, option.choices))})" if option.choices else "_default"
    return f"{spec}:{message}:{values}"


def _has_value(option: argparse.Action) -> bool:
    return option.nargs != 0


def _help(option: argparse.Action) -> str:
    told = option.help if option.help and option.help != argparse.SUPPRESS else ""
    return _plain(told)


def _plain(text: str) -> str:
    """Return a text in one line, without what means something in a description."""
    return " ".join("".join(c if c not in "[]:\\" else " " for c in text.replace("%%", "%")).split())


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
