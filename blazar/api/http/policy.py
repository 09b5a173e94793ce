# SPDX-License-Identifier: Apache-2.0
"""Authorization: oslo.policy with the rule names of the existing Blazar, and advice on policy files."""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from oslo_config import cfg
from oslo_policy import policy

from blazar.api.http.identity import Caller
from blazar.api.http.microversion import MAX_VERSION, MIN_VERSION
from blazar.api.http.routes import ADMIN, MEMBER, READER, Part, Route, Rule, up_to
from blazar.model.base.errors import Denied, EnforcementUnavailable, InvalidInput
from blazar.model.base.log_lines import Trouble

_REFERENCE = re.compile(r"rule:([^\s()]+)")
_GONE = frozenset({"blazar:plugins:get"})
"""Rules of the existing Blazar without a route of ours."""
_WHO: Mapping[str, str] = {
    ADMIN: "operators only",
    MEMBER: "members of the project, and operators",
    READER: "readers of the project, and operators",
    "rule:project_member_api": "members of the project",
    "rule:project_reader_api": "readers of the project",
    "@": "anybody",
}


TRIES = 5
"""How often a decision is tried. The library parses words of a rule as Python, which before 3.11.8 fails now and then
with a SystemError while another thread does the same (https://github.com/python/cpython/issues/106905)."""


def newer_rules(parts: Sequence[Part]) -> tuple[Rule, ...]:
    """Return the rules that no route of 1.0 or of version 2 checks."""
    earlier = {row.rule for part in parts for row in part.routes if row.serves(MIN_VERSION)}
    return tuple(rule for part in parts for rule in (*part.rules, *part.views) if rule not in earlier)


def explain_defaults(parts: Sequence[Part], given: Mapping[str, str]) -> list[str]:
    """Return a sentence for each meaning that the defaults of newer rules have which the file does not set."""
    by_meaning: dict[str, list[str]] = {}
    for rule in newer_rules(parts):
        if rule.name not in given:
            by_meaning.setdefault(_meaning(rule.check), []).append(rule.name)
    return [f"{meaning}: {', '.join(names)}" for meaning, names in by_meaning.items()]


def explain_mistakes(known: Iterable[str], given: Mapping[str, str]) -> list[str]:
    """Return a sentence for each rule of a file that no route asks for, and for each that refers to one that is not."""
    rules = {*known, *given}
    found = [
        f"{name} is no rule of this service, so it limits nobody; see etc/blazar/policy.yaml.sample for the names"
        for name in sorted(given.keys() - {*known} - _GONE)
        if name.startswith("blazar:")
    ]
    for name, check in given.items():
        if check in ("", "None", "[]"):
            found.append(f'{name} is empty, so it allows everybody; write "@" if that is meant')
        lost = [rule for rule in _REFERENCE.findall(check) if rule not in rules]
        found += [
            f"{name} refers to the rule {rule}, which does not exist: that part of it allows nobody" for rule in lost
        ]
    return found


def circle_of(rules: Mapping[str, str]) -> tuple[str, ...]:
    """Return rules that refer to each other in a circle, its first one at the end again; empty if none do."""
    done: set[str] = set()

    def walk(name: str, path: tuple[str, ...]) -> tuple[str, ...]:
        if name in path:
            return (*path[path.index(name) :], name)
        if name in done:
            return ()
        for further in _REFERENCE.findall(rules.get(name, "")):
            if found := walk(further, (*path, name)):
                return found
        done.add(name)
        return ()

    return next(filter(None, (walk(name, ()) for name in sorted(rules))), ())


def _meaning(check: str) -> str:
    """Return what a default means: the rules that it follows, or who is allowed."""
    followed = [rule for rule in _REFERENCE.findall(check) if rule.startswith("blazar:")]
    if not followed:
        return f"not set, for {_WHO.get(check, check)}"
    if "%(kind)s" in check:
        return f"not set, as the rule of the kind ({', '.join(followed)}), for other kinds operators only"
    further = [who for rule, who in _WHO.items() if rule in check.split()]
    return f"not set, as {' and '.join(followed)}" + (f", {further[0]}" if further else "")


LOG = logging.getLogger(__name__)

CHECK_INTERVAL = 1.0
"""Minimum seconds between two checks for changed policy files."""

_SCOPE = ["project"]
_ADMIN_OR_OWNER = policy.DeprecatedRule(
    "admin_or_owner",
    "rule:admin or project_id:%(project_id)s",
    deprecated_reason="The new rules distinguish readers from members.",
    deprecated_since="15.0.0",
)
"""Applies only if an operator sets ``[oslo_policy] enforce_new_defaults`` to false."""


def _rule(rule: Rule, operations: Iterable[tuple[str, str]]) -> policy.RuleDefault:
    described: list[policy.Operation] = [{"method": method, "path": path} for method, path in operations]
    if not described:
        return policy.RuleDefault(rule.name, rule.check, rule.description, scope_types=_SCOPE)
    return policy.DocumentedRuleDefault(rule.name, rule.check, rule.description, described, scope_types=_SCOPE)


def _operations(parts: Iterable[Part]) -> dict[Rule, list[tuple[str, str]]]:
    """Return the methods and paths of each rule; a path that several versions have stands once for each of them."""
    by_rule: dict[Rule, dict[str, list[tuple[str, str]]]] = {}
    for row in (row for part in parts for row in part.routes):
        if row.rule is not None:
            found = by_rule.setdefault(row.rule, {}).setdefault(row.path, [])
            if (operation := (row.method, _path(row))) not in found:
                found.append(operation)
    return {rule: [operation for found in paths.values() for operation in found] for rule, paths in by_rule.items()}


def _path(row: Route) -> str:
    path = row.url
    for parameter in row.parameters:
        if parameter.policy_name is not None:
            path = path.replace(f"{{{parameter.name}}}", f"{{{parameter.policy_name}}}")
    return path


def _persona(name: str, check: str, description: str) -> policy.RuleDefault:
    return policy.RuleDefault(name, check, description, deprecated_rule=_ADMIN_OR_OWNER)


def rules_of(parts: Sequence[Part]) -> list[policy.RuleDefault]:
    """Return all rules of these parts with their defaults."""
    parts = up_to(parts, MAX_VERSION)
    operations = _operations(parts)
    return [
        policy.RuleDefault("admin", "is_admin:True or role:admin", "An operator."),
        policy.RuleDefault(
            "admin_or_owner",
            _ADMIN_OR_OWNER.check_str,
            "Any user of the project, or an operator. No default rule uses it; policy files may.",
        ),
        _persona("project_member_api", "role:member and project_id:%(project_id)s", "A member of the project."),
        _persona("project_reader_api", "role:reader and project_id:%(project_id)s", "A reader of the project."),
        _persona("project_member_or_admin", "rule:project_member_api or rule:admin", "A member, or an operator."),
        _persona("project_reader_or_admin", "rule:project_reader_api or rule:admin", "A reader, or an operator."),
        *(_rule(rule, operations.get(rule, ())) for part in parts for rule in (*part.rules, *part.views)),
    ]


_NO_RULES: Mapping[type[Exception], str] = {
    AttributeError: "it has no rules with names",
    TypeError: "a rule has a check that is no text",
}
_UNNAMED = (cfg.Locations.opt_default, cfg.Locations.set_default)


MOST_DECISIONS = 4096
"""How many decisions are remembered; beyond that all are forgotten."""

# The library names some classes of checks, and makes the others.
_MADE = tuple(type(policy.RuleDefault("example", text).check) for text in ("@", "!", "role:x", "x:%(x)s"))
_WITHOUT_SERVER = (policy.NotCheck, policy.AndCheck, policy.OrCheck, policy.RuleCheck, *_MADE)
"""The checks that depend on nothing but the rules, the caller and the target."""


class Decisions:
    """Remembers what the rules of one enforcer decide, if none of them asks a server or is of another library."""

    def __init__(self, enforcer: policy.Enforcer) -> None:
        self.enforcer = enforcer
        self._lasting = all(_lasts(check) for check in enforcer.rules.values())
        self._known: dict[Hashable, bool] = {}

    def decide(self, rule: str, aim: Mapping[str, str], caller: Caller, decide: Callable[[], bool]) -> bool:
        """Return what is known of a caller and a target, or else what ``decide`` returns; its errors are not kept."""
        if not self._lasting:
            return decide()
        credentials = tuple(caller.credentials.items())
        key = rule, tuple(aim.items()), caller.user_id, caller.project_id, caller.roles, credentials
        try:
            known = self._known.get(key)
        except TypeError:
            # A credential that is a list or the like.
            return decide()
        if known is None:
            known = decide()
            if len(self._known) >= MOST_DECISIONS:
                self._known.clear()
            self._known[key] = known
        return known


def _lasts(check: object) -> bool:
    """Return whether a check always decides the same of the same."""
    if type(check) not in _WITHOUT_SERVER:
        return False
    parts = [check.rule] if isinstance(check, policy.NotCheck) else getattr(check, "rules", ())
    return all(map(_lasts, parts))


class Policy:
    """Authorizes by rule, caller and target, with the rules of ``parts``.

    Raises InvalidInput on construction if a policy file is invalid.

    A changed file is reloaded. If a file disappears or becomes invalid, that is logged once and the last rules stay
    in force. A configured file that does not exist is logged too; the default rules apply then.
    """

    def __init__(self, conf: cfg.ConfigOpts | None = None, *, parts: Sequence[Part]) -> None:
        if conf is None:
            conf = cfg.ConfigOpts()
            conf([], project="blazar", default_config_files=[], default_config_dirs=[])
        self._conf = conf
        self._parts = parts
        self._lock = threading.Lock()
        self._trouble = Trouble(LOG, "The servers that decide rules answer")
        # The library registers its options when the first Enforcer is created.
        self._enforcer = _enforcer(conf, self._parts)
        self._files_seen = self._files()
        self._checked_at = time.monotonic()
        self._load(self._enforcer)
        self._decisions = Decisions(self._enforcer)
        section = conf.oslo_policy
        location = conf.get_location("policy_file", "oslo_policy")
        named = location is not None and location.location not in _UNNAMED
        if named and conf.find_file(section.policy_file) is None:
            LOG.error("[oslo_policy] policy_file %s does not exist; the default rules apply", section.policy_file)
        if self.unread is not None:
            LOG.error("%s", explain_unread(self.unread))

    def allows(self, rule: str, caller: Caller, target: Mapping[str, str] | None = None) -> bool:
        """Return whether the rule allows the caller to act on the target (default: the caller's own project)."""
        aim = dict(target) if target is not None else {"project_id": caller.project_id, "user_id": caller.user_id}
        # Two empty ids would match, but an unscoped caller is a member of no project: without the key nothing matches.
        aim = {key: value for key, value in aim.items() if value or key != "project_id"}
        enforcer, decisions = self._current(), self._decisions
        if decisions.enforcer is not enforcer:
            decisions = self._decisions = Decisions(enforcer)
        try:
            decision = decisions.decide(rule, aim, caller, partial(_ask, enforcer, rule, aim, caller))
        except (OSError, RuntimeError) as error:
            # A check that asks a server: the library tells an expired deadline as a RuntimeError.
            self._trouble.log_failure(f"{rule} cannot be decided: {error}")
            raise EnforcementUnavailable(
                f"{rule} cannot be decided: its server does not answer; try again later"
            ) from None
        if self._trouble.lasts:
            self._trouble.log_recovery()
        return decision

    def check(self, rule: str, caller: Caller, target: Mapping[str, str] | None = None) -> None:
        """Raise Denied, which names the rule, if the rule does not allow it."""
        if not self.allows(rule, caller, target):
            raise Denied(f"Policy doesn't allow {rule} to be performed.", data={"rule": rule})

    @property
    def file(self) -> Path | None:
        """The policy file that was read, apart from those in folders."""
        path = self._current().policy_path
        return Path(path) if path else None

    @property
    def unread(self) -> Path | None:
        """Rules in JSON that are not read, because the name of the policy file is now that of a file in YAML."""
        name = Path(self._conf.oslo_policy.policy_file)
        if self.file is not None or name.suffix not in (".yaml", ".yml"):
            return None
        found = self._conf.find_file(str(name.with_suffix(".json")))
        return Path(found) if found else None

    @property
    def given(self) -> Mapping[str, str]:
        """The rules that policy files set, with their checks."""
        return {name: str(rule.check_str) for name, rule in self._current().file_rules.items()}

    @property
    def not_understood(self) -> tuple[str, ...]:
        """The rules of policy files that the library cannot read, as a whole or in part: that part allows nobody."""
        rules = self._current().file_rules.items()
        return tuple(
            name
            for name, rule in rules
            if _denials(rule.check) > _denials(rule.check_str)
            or (str(rule.check) == "!" and str(rule.check_str).strip() != "!")
        )

    def _current(self) -> policy.Enforcer:
        with self._lock:
            if time.monotonic() - self._checked_at < CHECK_INTERVAL:
                return self._enforcer
            self._checked_at = time.monotonic()
            if (files := self._files()) == self._files_seen:
                return self._enforcer
            before, self._files_seen = self._files_seen, files
            if gone := sorted(before.keys() - files.keys()):
                LOG.error("Policy file %s has disappeared; the last rules stay in force", ", ".join(gone))
                return self._enforcer
            fresh = _enforcer(self._conf, self._parts)
            try:
                self._load(fresh)
            except InvalidInput as error:
                LOG.error("%s. The last rules stay in force", error.message)
            else:
                LOG.info("Policy reloaded from %s", ", ".join(sorted(files)))
                self._enforcer = fresh
            return self._enforcer

    def _load(self, enforcer: policy.Enforcer) -> None:
        try:
            enforcer.load_rules()
        except (AttributeError, OSError, TypeError, ValueError) as error:
            # The library does not wrap the exceptions of its parsers, nor those of what is YAML and no rules.
            reason = _NO_RULES.get(type(error), " ".join(str(error).split()))
            raise InvalidInput(
                f"[oslo_policy] policy_file {self._conf.oslo_policy.policy_file} is invalid: "
                f'{reason}; write rules in YAML, each as "name": "check"'
            ) from error
        if circle := circle_of({name: str(check) for name, check in enforcer.rules.items()}):
            raise InvalidInput(
                f"[oslo_policy] policy_file {self._conf.oslo_policy.policy_file} is invalid: "
                f"{' refers to '.join(circle)}, so that nothing decides them; write one without the others"
            )
        # From here on this class checks the files: the library fails a request if a file has disappeared.
        enforcer.use_conf = False

    def _files(self) -> dict[str, tuple[int, int]]:
        """Return the existing policy files, each with its modification time and size."""
        section = self._conf.oslo_policy
        found: dict[str, tuple[int, int]] = {}
        for name in (section.policy_file, *section.policy_dirs):
            path = Path(self._conf.find_file(name) or "")
            if not name or path == Path():
                continue
            try:
                inside = sorted(path.iterdir()) if path.is_dir() else [path]
                for file in inside:
                    if not file.name.startswith(".") or file == path:
                        status = os.stat(file)
                        found[str(file)] = status.st_mtime_ns, status.st_size
            except OSError as error:
                LOG.debug("Policy in %s cannot be read: %s", path, error)
        return found


def _ask(enforcer: policy.Enforcer, rule: str, aim: Mapping[str, str], caller: Caller) -> bool:
    """Return what the library decides. OSError, RuntimeError: a server that is to decide does not answer."""
    credentials = {**caller.credentials, "user_id": caller.user_id, "roles": list(caller.roles), "is_admin": False}
    if caller.project_id:
        credentials["project_id"] = caller.project_id
    for _ in range(TRIES - 1):
        with suppress(SystemError):
            return bool(enforcer.enforce(rule, aim, credentials, do_raise=False))
    return bool(enforcer.enforce(rule, aim, credentials, do_raise=False))


def explain_unread(file: Path) -> str:
    """Return one sentence on rules in JSON that are not read."""
    return (
        f"{file} is not read, so none of its rules apply; convert it to policy.yaml with "
        "oslopolicy-convert-json-to-yaml, or name it as [oslo_policy] policy_file"
    )


def _denials(check: object) -> int:
    """Return how often a check says that nobody is allowed, as it also does in place of what cannot be read."""
    return len(re.findall(r"(?<![\w:%])!(?![\w:])", str(check)))


def _enforcer(conf: cfg.ConfigOpts, parts: Sequence[Part]) -> policy.Enforcer:
    enforcer = policy.Enforcer(conf)
    enforcer.suppress_deprecation_warnings = True
    enforcer.register_defaults(rules_of(parts))
    return enforcer
