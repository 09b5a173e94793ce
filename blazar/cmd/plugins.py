# SPDX-License-Identifier: Apache-2.0
"""Resource types and kinds: which are enabled, ours or those of other packages, and how they are made."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint
from typing import Any

from oslo_config import cfg

from blazar.clouds.ports import Cloud
from blazar.cmd.config import ConfigurationError
from blazar.model.base import plugins
from blazar.model.base.errors import BlazarError, InvalidInput
from blazar.model.resources.regions import Regions
from blazar.model.resources.resource import KINDS, ResourceKind
from blazar.model.use.resource_hours import CARD, GIGABYTE, INSTANCE, KIND_NAMESPACE, VCPU
from blazar.resources.contract.kind import Kind
from blazar.resources.contract.plugin import Plugin, check_members
from blazar.resources.contract.regional import Provided, combine_regions
from blazar.resources.contract.type import ResourceType, check_form

TYPES = "blazar.resource.plugins"
ADVICE = "docs/contributing/add-a-resource-type.md"
NAMED = "[manager] plugins"
LONGEST_KIND, LONGEST_TYPE = 32, 66
"""Characters that the database has room for."""

_WORD = re.compile(r"[a-z][a-z0-9:_.-]*")


def check(conf: cfg.ConfigOpts) -> None:
    """Raise ConfigurationError if an enabled type or its kind is unknown or incomplete; makes none of them."""
    _kinds(conf, _types(conf))


def make_types(conf: cfg.ConfigOpts, cloud: Cloud) -> Provided:
    """Return the enabled types, and our own kinds with those of these types.

    ConfigurationError if one is unknown, or cannot be made as configured.
    """
    enabled = _types(conf)
    served = _kinds(conf, enabled)
    types = tuple(_make(name, plugin, conf, cloud) for name, plugin in enabled.items())
    return types, {name: _make(name, plugin, conf, cloud) for name, plugin in served.items()}


def make_types_for(conf: cfg.ConfigOpts, regions: Regions, clouds: Mapping[str, Cloud]) -> Provided:
    """Return the types and kinds for the clouds of all regions. ConfigurationError as for ``make_types``."""
    of_each = {name: make_types(conf, clouds[name]) for name in regions}
    return combine_regions(regions, of_each) if regions else of_each[regions.default]


def _types(conf: cfg.ConfigOpts) -> Mapping[str, Any]:
    names = conf.manager.plugins
    there = plugins.entry_points_of(TYPES)
    unknown = [name for name in names if name not in there]
    if unknown:
        raise ConfigurationError(
            f"{NAMED} names {', '.join(unknown)}, which is not installed; installed are: {', '.join(sorted(there))}"
        )
    found = {name: _load(there[name], ResourceType, check_form, NAMED) for name in names}
    for name, plugin in found.items():
        _check_word(name, "resource_type", plugin.resource_type, LONGEST_TYPE)
        _check_word(name, "kind", plugin.kind, LONGEST_KIND)
    seen = [found[name].resource_type for name in names]
    twice = sorted({name for name in seen if seen.count(name) > 1})
    if twice:
        raise ConfigurationError(f"{NAMED} has more than one plugin for {', '.join(twice)}")
    return found


def _kinds(conf: cfg.ConfigOpts, enabled: Mapping[str, Any]) -> Mapping[ResourceKind, Any]:
    there = plugins.entry_points_of(KIND_NAMESPACE)
    for name, plugin in enabled.items():
        if plugin.kind not in there:
            raise ConfigurationError(
                f"{NAMED} names {name}, whose kind {plugin.kind!r} is not installed: no package has an entry point of "
                f"{KIND_NAMESPACE} with this name; see {ADVICE}"
            )
    wanted = sorted({*KINDS, *(plugin.kind for plugin in enabled.values())})
    group = f"The group {KIND_NAMESPACE}"
    found = {kind: _load(there[kind], Kind, check_members, group) for kind in wanted}
    for name, plugin in found.items():
        _check_word(name, "kind", plugin.kind, LONGEST_KIND)
        if plugin.kind in (INSTANCE, VCPU, CARD, GIGABYTE):
            raise ConfigurationError(f"the kind {name} has the name of a measure of usage; choose another")
        if plugin.kind != name:
            raise ConfigurationError(
                f"the entry point {name} of {KIND_NAMESPACE} is of the kind {plugin.kind!r}; give both one name"
            )
    return found


def _check_word(name: str, field: str, value: object, longest: int) -> None:
    if not isinstance(value, str) or not _WORD.fullmatch(value) or len(value) > longest:
        raise ConfigurationError(
            f"{name} cannot be used: {field} must be an attribute of the class, of at most {longest} characters of a-z "
            f"0-9 : _ . -, and is {value!r:.80}; see {ADVICE}"
        )


def _load(point: EntryPoint, contract: type[Plugin], check_whole: Callable[[Any], None], named: str) -> Any:
    try:
        plugin = plugins.load(point, contract.needed, named=named, advice=ADVICE)
    except InvalidInput as error:
        raise ConfigurationError(error.message) from error
    if not isinstance(plugin, type) or not issubclass(plugin, contract):
        raise ConfigurationError(
            f"{named} names {point.name}, which is not a subclass of {contract.__name__} in {contract.__module__}; "
            f"see {ADVICE}"
        )
    try:
        check_whole(plugin)
    except InvalidInput as error:
        raise ConfigurationError(
            f"{named} names {point.name}, which is incomplete: {error.message}; see {ADVICE}"
        ) from error
    return plugin


def _make(name: str, plugin: Any, conf: cfg.ConfigOpts, cloud: Cloud) -> Any:
    try:
        made = plugin.configured(conf, cloud)
    except BlazarError as error:
        raise ConfigurationError(f"{name} cannot be used as configured: {error.message}") from error
    except Exception as error:
        # Code of other packages: it may raise anything.
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise ConfigurationError(f"{name} cannot be used as configured: {reason}") from error
    if not isinstance(made, ResourceType | Kind) or (not isinstance(made, plugin) and made.kind != plugin.kind):
        raise ConfigurationError(f"{name} cannot be used: configured returned {type(made).__name__}; see {ADVICE}")
    return made
