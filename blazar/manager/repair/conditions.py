# SPDX-License-Identifier: Apache-2.0
"""Pure: what managers lack of what is not their own, told as problems, with the commands that mend it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime

from blazar.model.base.clock import spell
from blazar.model.managers.presence import ConditionKind, ManagerCondition, ManagerFacts
from blazar.model.problems.problems import Problem, ProblemKind
from blazar.model.resources.resource import HOST, ResourceKind, noun

Lacking = tuple[ManagerFacts, ManagerCondition]
"""What a manager lacks, with that manager."""


def explain_conditions(conditions: Collection[Lacking], *, polls_before: datetime) -> Iterator[Problem]:
    """Yield the problems of what managers lack: one for each log, and one for what they lack together.

    That something cannot be polled is one if it began before ``polls_before``.
    """
    found = defaultdict[tuple[ConditionKind, str, str], list[Lacking]](list)
    for facts, condition in conditions:
        subject = facts.id if condition.kind is ConditionKind.LOG else condition.subject
        if condition.kind is not ConditionKind.POLL or condition.since <= polls_before:
            found[condition.kind, condition.region, subject].append((facts, condition))
    explain = {
        ConditionKind.LOG: _explain_log,
        ConditionKind.ENFORCEMENT: _explain_service,
        ConditionKind.POLL: _explain_poll,
    }
    return (explain[kind](lacking) for (kind, _, _), lacking in found.items())


def _explain_log(found: list[Lacking]) -> Problem:
    (facts, first), *_ = found
    return Problem(
        f"{ProblemKind.LOG}:{facts.id}",
        ProblemKind.LOG,
        first.since,
        f"The manager on {facts.host} cannot write its log",
        (
            *_list_reasons(found),
            "It works, but what it does is not written; on its standard error it says what is wrong once a minute: "
            f"journalctl -u blazar-manager -n 20, on {facts.host}.",
            "See which disk is full with df -h, and make room: the log goes on by itself within half a minute.",
        ),
    )


def _explain_service(found: list[Lacking]) -> Problem:
    (_, first), *_ = found
    hosts = ", ".join(sorted({facts.host for facts, _ in found}))
    return Problem(
        f"{ProblemKind.ENFORCEMENT}:{first.subject}",
        ProblemKind.ENFORCEMENT,
        first.since,
        f"The service that {first.subject} asks does not answer",
        (
            *_list_reasons(found),
            f"It was asked by the managers on {hosts}.",
            "Users cannot make or change leases until it answers, unless [enforcement] external_service_on_error is "
            "allow. Messages that it did not get are sent again.",
            "Start the service, or correct its URL or token in [enforcement], and then: "
            "systemctl restart blazar-manager.",
            "It is no problem any more once the service answers, or was not needed for a quarter of an hour.",
        ),
    )


def _explain_poll(found: list[Lacking]) -> Problem:
    (_, first), *_ = found
    hosts = ", ".join(sorted({facts.host for facts, _ in found}))
    lists = "blazar host list" if first.subject == HOST else f"blazar resource list {first.subject}"
    return Problem(
        f"{ProblemKind.POLL}:{first.region}:{first.subject}",
        ProblemKind.POLL,
        first.since,
        f"The state of {noun(ResourceKind(first.subject))}s cannot be read",
        (
            *_list_reasons(found),
            f"The managers on {hosts} cannot reach what knows it: the cloud, or the hooks of these resources.",
            "The last known state counts meanwhile: none of them fails or recovers, and no lease of theirs is healed.",
            f"There blazar-status upgrade check says if Keystone answers; {lists} shows which resources are concerned.",
            "It is no problem any more with the first poll that succeeds.",
        ),
        region=first.region,
    )


def _list_reasons(found: Iterable[Lacking]) -> Iterator[str]:
    """Yield the different reasons, each with since when."""
    since = {condition.error: condition.since for _, condition in reversed(list(found))}
    return (f"Since {spell(at)}: {error}." for error, at in sorted(since.items(), key=lambda item: item[1]))
