# SPDX-License-Identifier: Apache-2.0
"""What commands of ``blazar`` and ``openstack reservation`` have in common."""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from cliff import command

from blazarclient import exception
from blazarclient.table_fit import FittedLister, SafeShowOne
from blazarclient.text_columns import say

if TYPE_CHECKING:
    from blazarclient.library import Reservations

LOG = logging.getLogger(__name__)

EXIT_CODES: Sequence[tuple[type[BaseException] | tuple[type[BaseException], ...], int]] = (
    (exception.Uncertain, 9),
    (exception.Timeout, 8),
    ((exception.NotEnoughResources, exception.LimitExceeded), 5),
    ((exception.NotFound, exception.NoUniqueMatch), 3),
    ((exception.NotAuthorized, exception.Forbidden), 4),
    ((exception.Conflict, exception.PreconditionFailed), 6),
    ((exception.ServiceUnavailable, exception.NoBlazarEndpoint, exception.TooManyRequests), 7),
)
"""What a program finds in ``$?``; 1 is any other failure, and 2 a command that is written wrongly."""

DISTRIBUTION = "python-blazarclient"

FLAT_JSON = "BLAZAR_FLAT_JSON"
"""A variable. If it is set, JSON and YAML of one resource have texts where there are lists, objects and nulls."""

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def exit_code(error: BaseException) -> int:
    """Return the exit code for an error."""
    return next((code for kinds, code in EXIT_CODES if isinstance(error, kinds)), 1)


def told(error: Exception) -> exception.BlazarClientException | None:
    """Return an error as one of ours, with a sentence for people; None if it is none that a user can mend."""
    if isinstance(error, exception.BlazarClientException):
        return error
    # Nothing of keystoneauth is imported before a command needs it; then it is there.
    keystone = sys.modules.get("keystoneauth1.exceptions")
    if keystone is not None and isinstance(error, keystone.ClientException):
        from blazarclient.library.connections import of_session

        return of_session(error)
    return None


def _in_words(error: exception.BlazarClientException) -> str:
    """Return the sentences of an error, without pointers into a request that nobody has seen."""
    text = str(error)
    if error.faults and text == " ".join(map(str, error.faults)):
        return " ".join(fault.words for fault in error.faults)
    return text


class OpenStackCommand(command.Command):
    """A command of any OpenStack client."""


class BlazarCommand(OpenStackCommand):
    """A command with a client of the service, whose errors become a sentence and an exit code."""

    resource: str = ""
    """The manager of the client, and the noun of messages."""
    name_key = "name"
    json_indent: int | None = None
    own_options: Sequence[str] = ()
    """Options of this command that ``blazar`` itself has as well: after the name of the command, they are its own."""

    def get_client(self) -> Any:
        """Return the client of version 1, of ``openstack`` or of ``blazar``."""
        manager = getattr(self.app, "client_manager", None)
        return manager.reservation if manager is not None else self.app.client

    def get_library(self) -> Reservations:
        """Return the typed library, of ``openstack`` or of ``blazar``; the existing Blazar does not serve it."""
        from blazarclient.library import Reservations

        client = self.get_client()
        # What the user gives is obeyed, be it longer or shorter than usual; openstack has no such option.
        patience = getattr(getattr(self.app, "options", None), "timeout", None)
        return Reservations(client.session, patience=patience, **client.adapter_options)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        return super().get_parser(prog_name)  # type: ignore[no-any-return]

    def get_description(self) -> str:
        """Return what the command does, in sentences: its help has them in one paragraph."""
        first, more, rest = super().get_description().partition("\n\n")
        return f"{first}. {rest}" if more else str(first)

    def get_epilog(self) -> str:
        """Return what the help ends with: of ``openstack``, where its commands come from."""
        if list(self._hooks):
            return super().get_epilog()  # type: ignore[no-any-return]
        # cliff reads the lists of files of all packages to learn which one a command is of.
        own = type(self.app).__module__.partition(".")[0] == __name__.partition(".")[0]
        return "" if own else f"This command is provided by the {DISTRIBUTION} plugin."

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Do what the command is for."""
        raise NotImplementedError

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Carry out the command; a refusal is written to stderr in a sentence."""
        try:
            return super().run(parsed_args)  # type: ignore[no-any-return]
        except Exception as error:
            ours = told(error)
            if ours is None:
                raise
            self.tell(_in_words(ours))
            if ours.request_id:
                LOG.debug("request id: %s", ours.request_id)
            LOG.debug("where it happened:", exc_info=True)
            return exit_code(ours)

    def tell(self, text: str) -> None:
        """Write a sentence for people to stderr, so that stdout has only data."""
        say(text, self.app.stderr)

    def format_output_data(self, data: dict[str, Any]) -> None:
        """Make the values of a resource into texts, for tables."""
        for key, value in data.items():
            data[key] = self._text(value)

    def _text(self, value: Any) -> Any:
        if value is None:
            return ""
        if isinstance(value, dict):
            return json.dumps(value, indent=self.json_indent)
        if isinstance(value, list | tuple):
            return "\n".join(str(self._text(item)) for item in value)
        return value

    def id_of(self, text: str) -> str:
        """Return the id of a resource that is given by id or name. NotFound; NoUniqueMatch."""
        if self.is_id(text):
            return text
        manager = getattr(self.get_client(), self.resource)
        return self.only([item for item in manager.list() if item.get(self.name_key) == text], self.resource, text)

    @staticmethod
    def only(found: Sequence[dict[str, Any]], noun: str, text: str) -> str:
        """Return the id of the only resource that was found. NotFound; NoUniqueMatch."""
        ids = [str(item["id"]) for item in found]
        if not ids:
            raise exception.NotFound(f"There is no {noun} {text}")
        if len(ids) > 1:
            nouns = noun if noun.endswith("s") else f"{noun}s"
            raise exception.NoUniqueMatch(f"Several {nouns} are called {text}; give an id: {', '.join(ids)}")
        return ids[0]

    def is_id(self, text: str) -> bool:
        """Return whether a text is an id and not a name."""
        return bool(_UUID.fullmatch(text))

    def structured(self, parsed_args: argparse.Namespace) -> bool:
        """Return whether a program reads the output: then values keep their structure."""
        return getattr(parsed_args, "formatter", None) in ("json", "yaml") and not os.environ.get(FLAT_JSON)

    def shown(self, data: dict[str, Any], parsed_args: argparse.Namespace) -> list[tuple[Any, ...]]:
        """Return the keys and values of a resource, sorted by key."""
        data = dict(data)
        if not self.structured(parsed_args):
            self.format_output_data(data)
        keys = tuple(sorted(data))
        return [keys, tuple(data[key] for key in keys)]


class OneCommand(BlazarCommand):
    """Is about one resource that there is already."""

    given = ("<id>", "id of the resource")
    """How the resource is given: the name of the argument, and what it may be."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        metavar, help_ = self.given
        parser.add_argument("id", metavar=metavar, help=help_)
        return parser


class CreateCommand(BlazarCommand, SafeShowOne):
    """Makes a resource and shows it."""

    json_indent = 4

    def args2body(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        """Return the arguments of the manager's method."""
        raise NotImplementedError

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Make it."""
        return self.get_data(parsed_args)

    def get_data(self, parsed_args: argparse.Namespace) -> list[tuple[Any, ...]]:
        """Make it, and return its keys and values."""
        data = getattr(self.get_client(), self.resource).create(**self.args2body(parsed_args))
        self.tell_done(f"Created a new {self.resource}:", parsed_args)
        return self.shown(data, parsed_args)

    def tell_done(self, text: str, parsed_args: argparse.Namespace) -> None:
        """Write what was done: above a table, and elsewhere where it does not disturb a program that reads."""
        table = getattr(parsed_args, "formatter", "table") == "table"
        print(text, file=self.app.stdout if table else self.app.stderr)


class UpdateCommand(BlazarCommand):
    """Changes a resource."""

    def args2body(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        """Return the arguments of the manager's method."""
        raise NotImplementedError

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Change it."""
        body = self.args2body(parsed_args)
        # Sent without a change, too: that there is no such resource is an error all the same.
        getattr(self.get_client(), self.resource).update(self.id_of(parsed_args.id), **body)
        self.tell_changed(parsed_args, bool(body), "no option says what to change; --help lists them")

    def tell_changed(self, parsed_args: argparse.Namespace, changed: bool, why_not: str) -> None:
        """Say that it was changed, or why it was not."""
        done = f"Updated {self.resource}: {parsed_args.id}"
        nothing = f"Nothing was changed of {self.resource} {parsed_args.id}: {why_not}"
        print(done if changed else nothing, file=self.app.stdout)


class DeleteCommand(BlazarCommand):
    """Deletes a resource."""

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Delete it."""
        getattr(self.get_client(), self.resource).delete(self.id_of(parsed_args.id))
        print(f"Deleted {self.resource}: {parsed_args.id}", file=self.app.stdout)


class ListCommand(BlazarCommand, FittedLister):
    """Lists resources."""

    list_columns: Sequence[str] = ()
    sort_column = "id"
    """The column that they are sorted by unless another is asked for."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--sort-by",
            metavar="<column>",
            default=self.sort_column,
            help=f"column to sort by (default: {self.sort_column})",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for them."""
        return self.get_data(parsed_args)

    def items(self, parsed_args: argparse.Namespace) -> list[dict[str, Any]]:
        """Return the resources."""
        found: list[dict[str, Any]] = getattr(self.get_client(), self.resource).list(sort_by=parsed_args.sort_by)
        return found

    def get_data(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[tuple[Any, ...]]]:
        """Return columns and rows; a column that is asked for may be any key."""
        found = self.items(parsed_args)
        columns = self.columns_of(found, parsed_args)
        null = None if self.structured(parsed_args) else ""
        rows = [tuple(null if item.get(column) is None else item[column] for column in columns) for item in found]
        return columns, rows

    def columns_of(self, items: Sequence[dict[str, Any]], parsed_args: argparse.Namespace) -> list[str]:
        """Return the columns: those asked for, else the usual ones that are there."""
        known = {key for item in items for key in item}
        asked = list(getattr(parsed_args, "columns", None) or ())
        if not items or not asked:
            return [column for column in self.list_columns if not items or column in known]
        if unknown := [column for column in asked if column not in known]:
            raise exception.CommandError(
                f"There is no column {unknown[0]}; choose from {', '.join(sorted(known))}", code=400
            )
        return asked


class ShowCommand(BlazarCommand, SafeShowOne):
    """Shows a resource."""

    json_indent = 4

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for it."""
        return self.get_data(parsed_args)

    def get_data(self, parsed_args: argparse.Namespace) -> list[tuple[Any, ...]]:
        """Return its keys and values."""
        data = getattr(self.get_client(), self.resource).get(self.id_of(parsed_args.id))
        return self.shown(data, parsed_args)
