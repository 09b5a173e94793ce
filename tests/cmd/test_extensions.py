# SPDX-License-Identifier: Apache-2.0
"""Resource types and filters of other packages: those for the existing Blazar are refused with their true reason."""

from __future__ import annotations

import importlib
import sys

import pytest

from blazar.cmd import assemble, config
from blazar.cmd.config import ConfigurationError

MODULES = {
    "gone": "from blazar.plugins import base\n\n\nclass Plugin(base.BasePlugin):\n    pass\n",
    "moved": "from blazar.enforcement.filters import base_filter as b\n\n\nclass Plugin(b.BaseFilter):\n    pass\n",
    "name": "from blazar.enforcement import exceptions\n\n\nclass Plugin:\n    pass\n",
    "needy": "import a_library_that_is_missing\n",
    "broken": "raise RuntimeError('two\\nlines')\n",
    "older": (
        "class Plugin:\n    resource_type = 'x'\n    def __init__(self, conf=None): pass\n"
        "    def reserve_resource(self): pass\n    def check_create(self): pass\n    def on_end(self): pass\n"
    ),
}
GROUPS = {"plugins": "blazar.resource.plugins", "enabled_filters": "blazar.enforcement.filters"}


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package of somebody else's, with an extension of either kind in each of its modules."""
    for name, text in MODULES.items():
        (tmp_path / f"acme_{name}.py").write_text(text, encoding="utf-8")
    meta = tmp_path / "acme-2.0.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 2.0\n", encoding="utf-8")
    lines = [
        line
        for group in GROUPS.values()
        for line in (f"[{group}]", *(f"acme.{name} = acme_{name}:Plugin" for name in MODULES))
    ]
    (meta / "entry_points.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()


OLDER = "written for the existing Blazar"


@pytest.mark.sample(1)
@pytest.mark.parametrize("option", GROUPS)
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gone", ["No module named 'blazar.plugins'", OLDER]),
        ("moved", ["blazar.enforcement.filters", OLDER]),
        ("name", ["'exceptions' from 'blazar.enforcement'", OLDER]),
        ("needy", ["ModuleNotFoundError", "a_library_that_is_missing"]),
        ("broken", ["RuntimeError: two lines"]),
        ("older", ["acme_older:Plugin has no ", "perhaps one of the existing Blazar"]),
    ],
)
def test_what_cannot_be_used_is_refused_once_with_the_true_reason(load, installed, caplog, option, name, words):
    section = "manager" if option == "plugins" else "enforcement"
    with pytest.raises(ConfigurationError) as refused:
        assemble.check_plugins(load(f"[{section}]", f"{option} = acme.{name}"))
    said = refused.value.message
    assert said.startswith(f"[{section}] {option} names acme.{name} (of acme 2.0), which ")
    assert "not installed" not in said
    assert "\n" not in said
    for part in words:
        assert part in said
    if OLDER not in words:
        assert OLDER not in said
    assert caplog.records == []


HALF = """from blazar.resources.contract.type import ResourceType


class Plugin(ResourceType):
    resource_type = "acme:desk"
    kind = "host"
    def __init__(self, *_): pass
    def parameters(self, given): pass
    def demand(self, parameters, *, known): pass
    def start(self, task): pass
    def end(self, task): pass
    def prepare(self, task): pass
    @classmethod
    def configured(cls, conf, cloud): return cls()
"""


def test_a_type_with_half_of_a_capability_is_refused_with_the_other_half(load, installed, tmp_path, monkeypatch):
    (tmp_path / "acme_older.py").write_text(HALF, encoding="utf-8")
    # Another test may have loaded the other one.
    monkeypatch.delitem(sys.modules, "acme_older", raising=False)
    importlib.invalidate_caches()
    with pytest.raises(ConfigurationError, match="it has prepare, but not must_prepare_again: it needs both or"):
        assemble.check_plugins(load("[manager]", "plugins = acme.older"))


DEMAND = "    def demand(self, parameters, *, known): pass\n"
CHILDREN = "    def children(self, parameters): pass\n"
CHANGES = "    def changed(self, current, change): pass\n    def demand_again(self, task, parameters, *, known): pass\n"


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("has", "words"),
    [
        ("", "it has neither demand nor children: a type takes resources itself, or is made of others"),
        (DEMAND + CHILDREN, "it has both demand and children"),
        (CHILDREN + CHANGES, "it has children and demand_again: what is made of others changes in its dates only"),
    ],
)
def test_a_type_takes_resources_or_is_made_of_others(load, installed, tmp_path, monkeypatch, has, words):
    text = HALF.replace(DEMAND, has).replace("    def prepare(self, task): pass\n", "")
    (tmp_path / "acme_older.py").write_text(text, encoding="utf-8")
    monkeypatch.delitem(sys.modules, "acme_older", raising=False)
    importlib.invalidate_caches()
    with pytest.raises(ConfigurationError, match=rf"names acme\.older, which is incomplete: {words}"):
        assemble.check_plugins(load("[manager]", "plugins = acme.older"))


def test_what_is_installed_and_not_named_is_not_loaded_and_not_told_of(load, installed, caplog):
    assemble.check_plugins(load())
    assert caplog.records == []


def test_an_unknown_name_is_refused_with_the_names_that_exist(load, installed, caplog):
    with pytest.raises(ConfigurationError, match=r"acme\.no, which is not installed; installed are: acme\.broken, "):
        assemble.check_plugins(load("[manager]", "plugins = acme.no"))
    assert caplog.records == []


OPTIONS = """
from oslo_config import cfg
def required(): return [("acme", [cfg.StrOpt("key", required=True), cfg.IntOpt("number", default=1)])]
def ends(): raise SystemExit(3)
def clashes(): return [("manager", [cfg.StrOpt("claim_ttl")])]
def nonsense(): return [5]
"""


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["required", "ends", "clashes", "nonsense"])
def test_options_of_a_package_that_nobody_uses_stop_no_start(load, installed, tmp_path, monkeypatch, caplog, name):
    (tmp_path / "acme_options.py").write_text(OPTIONS, encoding="utf-8")
    monkeypatch.delitem(sys.modules, "acme_options", raising=False)
    points = tmp_path / "acme-2.0.dist-info" / "entry_points.txt"
    points.write_text(points.read_text("utf-8") + f"[oslo.config.opts]\nacme = acme_options:{name}\n", "utf-8")
    importlib.invalidate_caches()
    conf = load()
    assemble.check_plugins(conf)
    assert [r.getMessage().partition(":")[0] for r in caplog.records] == (
        [] if name == "required" else ["Options of acme are not available"]
    )


def test_options_of_a_package_are_checked_and_known(load, installed, tmp_path, monkeypatch):
    (tmp_path / "acme_options.py").write_text(OPTIONS, encoding="utf-8")
    monkeypatch.delitem(sys.modules, "acme_options", raising=False)
    points = tmp_path / "acme-2.0.dist-info" / "entry_points.txt"
    points.write_text(points.read_text("utf-8") + "[oslo.config.opts]\nacme = acme_options:required\n", "utf-8")
    importlib.invalidate_caches()
    assert config.leftovers(load("[acme]", "number = 2", "nunber = 3")) == ["[acme] nunber"]
    with pytest.raises(ConfigurationError, match=r"\[acme\] number cannot be 'many'"):
        load("[acme]", "number = many")
