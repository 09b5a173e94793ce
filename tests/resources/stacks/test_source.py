# SPDX-License-Identifier: Apache-2.0
"""Nothing of a template that could make Heat fetch something, or that has no price, gets as far as Heat."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blazar.model.base.errors import InvalidInput
from blazar.resources.stacks.documents import LARGEST
from blazar.resources.stacks.source import KNOWN, MOST_FILES, MOST_RESOURCES, StackSource
from tests.cases import cases

SERVER = {"type": "OS::Nova::Server", "properties": {"flavor": "tiny", "image": "tiny"}}


def template(**resources):
    return {"heat_template_version": "2018-08-31", "resources": resources}


def text(**resources):
    return json.dumps(template(**resources))


def of_type(kind, **properties):
    return {"type": kind, "properties": properties} if properties else {"type": kind}


def group(inner, **properties):
    return of_type("OS::Heat::ResourceGroup", resource_def=inner, **properties)


def scaled(inner, **properties):
    return of_type("OS::Heat::AutoScalingGroup", resource=inner, **properties)


def source(given=None, **more):
    return StackSource.checked({"template": given or template(a=SERVER), **more})


def test_a_template_is_taken_with_its_files_and_environment():
    found = source(
        "heat_template_version: 2018-08-31\n"
        "resources:\n"
        "  a: {type: OS::Nova::Server, properties: {user_data: {get_file: boot.sh}, flavor: {get_param: size}}}\n"
        "  b: {type: pair.yaml}\n"
        "  c: {type: My::Pair}\n",
        files={"boot.sh": "#!/bin/sh\ncurl http://169.254.169.254/\n", "pair.yaml": text(x=SERVER, y=SERVER)},
        environment={"resource_registry": {"My::Pair": "pair.yaml"}, "parameter_defaults": None},
        parameters={"size": "tiny"},
    )
    assert found.template["heat_template_version"] == "2018-08-31"
    assert found.templates == {"pair.yaml": template(x=SERVER, y=SERVER)}
    assert found.files == {"boot.sh": "#!/bin/sh\ncurl http://169.254.169.254/\n"}
    assert found.texts == {**found.files, "pair.yaml": text(x=SERVER, y=SERVER)}
    assert found.environment == {"resource_registry": {"My::Pair": "pair.yaml"}}
    assert found.parameters == {"size": "tiny"}


def test_text_that_looks_like_a_url_is_fine_where_nothing_is_fetched():
    url = {"str_replace": {"template": "http://host/$x", "params": {"$x": "file:///etc/passwd"}}}
    source(template(a=of_type("OS::Heat::Value", value=url)), parameters={"x": "http://example.org/"})


URLS = ["http://10.0.0.1/x.yaml", "file:///etc/passwd", "FTP://e/x.template", " http://e/", "//e/x.yaml", "data:x"]
IN_A = "/template/resources/a"
IN_REGISTRY = "/environment/resource_registry"
TAKEN = {"template": template(a=SERVER)}


def having(resource, **more):
    return {"template": template(a=resource), **more}


def having_text(resource):
    return {"template": text(a=resource)}


def having_file(content):
    return having(of_type("n.yaml"), files={"n.yaml": content})


def config(**properties):
    return of_type("OS::Heat::SoftwareConfig", **properties)


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize(
    ("make", "pointer"),
    [
        (lambda url: having(of_type(url)), IN_A + "/type"),
        (lambda url: having_text(of_type(url)), "/template"),
        (
            lambda url: having(group(group(of_type(url)))),
            IN_A + "/properties/resource_def/properties/resource_def/type",
        ),
        (lambda url: having(scaled(of_type(url), max_size=2)), IN_A + "/properties/resource/type"),
        (lambda url: having_file(text(b=of_type(url))), "/files/n.yaml"),
        (lambda url: having(config(config={"get_file": url})), IN_A + "/properties/config/get_file"),
        (
            lambda url: {"template": {**template(a=SERVER), "outputs": {"o": {"get_file": url}}}},
            "/template/outputs/o/get_file",
        ),
        (lambda url: TAKEN | {"files": {url: text(a=SERVER)}}, "/files/{}"),
        (
            lambda url: TAKEN | {"environment": {"resource_registry": {"OS::Nova::Server": url}}},
            IN_REGISTRY + "/OS::Nova::Server",
        ),
        (lambda url: TAKEN | {"environment": {"resource_registry": {url: "OS::Heat::None"}}}, IN_REGISTRY + "/{}"),
    ],
    ids=[
        "type",
        "in text",
        "in groups",
        "in a scaled group",
        "in a file",
        "get_file",
        "output",
        "name of a file",
        "registry",
        "name in the registry",
    ],
)
def test_whatever_has_a_scheme_is_refused(make, pointer, url):
    with pytest.raises(InvalidInput, match="nothing is fetched for a stack") as refused:
        StackSource.checked(make(url))
    assert refused.value.pointer == pointer.format(url.replace("~", "~0").replace("/", "~1"))


RUN_TIME = {"yaql": {"expression": "1", "data": {"get_attr": ["b"]}}}
NO_PROPERTIES = {"type": "OS::Heat::ResourceGroup", "properties": {"get_param": "p"}}


@pytest.mark.parametrize(
    ("given", "words", "pointer"),
    [
        ({}, "Missing parameter template", None),
        ({"template": None}, "Missing parameter template", None),
        ({"template": {"Resources": {}}}, "heat_template_version", "/template"),
        ({"template": {"heat_template_version": "2018-08-31"}}, "has no resources", "/template"),
        (having("x"), "the type null", IN_A),
        (having({"type": {"get_param": "t"}}), "without a function", IN_A),
        (having(of_type("OS::Trove::Instance")), "cannot be priced", IN_A + "/type"),
        (having(of_type("AWS::CloudFormation::Stack")), "cannot be priced", IN_A + "/type"),
        (having(of_type("OS::Heat::Stack")), "cannot be priced", IN_A + "/type"),
        (having(of_type("OS::Blazar::Lease")), "cannot be priced", IN_A + "/type"),
        (having(of_type("OS::Neutron::ProviderNet")), "cannot be priced", IN_A + "/type"),
        (having(of_type("/etc/x.yaml")), "files does not have", IN_A + "/type"),
        (having(group({"get_param": "d"})), "the type null", IN_A + "/properties/resource_def"),
        (having(of_type("OS::Heat::ResourceGroup")), "needs resource_def", IN_A + "/properties"),
        (having(NO_PROPERTIES), "needs resource_def", IN_A + "/properties"),
        (having(scaled(SERVER, desired_capacity=1)), "no max_size", IN_A + "/properties"),
        (having(scaled(SERVER, max_size=RUN_TIME)), "its max_size", IN_A + "/properties/max_size"),
        (having(group(SERVER, count=RUN_TIME)), "its count", IN_A + "/properties/count"),
        (having(config(config={"get_file": ["a"]})), "get_file", IN_A + "/properties/config/get_file"),
        (having(config(config={"get_file": "a", "b": 1})), "does not have", IN_A + "/properties/config/get_file"),
        (having_file(text(b=of_type("n.yaml"))), "uses itself", "/files/n.yaml"),
        (having_file("["), "not YAML", "/files/n.yaml"),
        (having_file("a: b"), "heat_template_version", "/files/n.yaml"),
        (TAKEN | {"files": ["a"]}, "not an object", "/files"),
        (TAKEN | {"files": {"a": 1}}, "no text", "/files/a"),
        (TAKEN | {"files": {"": "x"}}, "1 to 255", "/files/"),
        (TAKEN | {"files": {"a": "\0"}}, "NUL", "/files/a"),
        (TAKEN | {"files": {str(n): "" for n in range(MOST_FILES + 1)}}, "at most", "/files"),
        (TAKEN | {"files": {"a": "x" * LARGEST}}, "together", "/template"),
        (TAKEN | {"parameters": ["a"]}, "not an object", "/parameters"),
        (TAKEN | {"environment": {"event_sinks": []}}, "event_sinks", "/environment/event_sinks"),
        (TAKEN | {"environment": "event_sinks: []"}, "event_sinks", "/environment"),
        (TAKEN | {"environment": {"parameters": []}}, "not an object", "/environment/parameters"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_is_refused_where_it_is(given, words, pointer):
    with pytest.raises(InvalidInput, match=words) as refused:
        StackSource.checked(given)
    assert refused.value.pointer == pointer


@pytest.mark.parametrize(
    "registry",
    [
        {"My::Net": "OS::Nova::Server"},
        {"OS::Neutron::Net": "OS::Nova::Server"},
        {"OS::Neutron::*": "OS::Nova::*"},
        {"OS::Nova::*": "a.yaml"},
        {"base_url": "a.yaml"},
        {"resources": {"a": {"OS::Nova::Server": "http://e/"}}},
        {"resources": "a.yaml"},
        {"My::Net": "b.yaml"},
        {"My::Net": "notes"},
        {"My::Net": None},
    ],
    ids=str,
)
def test_an_environment_does_not_hide_what_a_type_takes(registry):
    with pytest.raises(InvalidInput, match="resource_registry of environment"):
        source(environment={"resource_registry": registry}, files={"a.yaml": text(a=SERVER), "notes": "x"})


def test_a_type_that_a_file_stands_for_is_checked_as_the_file():
    registry = {"resource_registry": {"OS::Neutron::Net": "net.yaml"}}
    with pytest.raises(InvalidInput, match="cannot be priced") as refused:
        source(
            template(a=of_type("OS::Neutron::Net")), environment=registry, files={"net.yaml": text(a=of_type("X::Y"))}
        )
    assert refused.value.pointer == "/files/net.yaml"
    nothing = {"resource_registry": {"OS::Trove::Instance": "OS::Heat::None"}}
    assert source(template(a=of_type("OS::Trove::Instance")), environment=nothing).environment == nothing


def test_templates_inside_each_other_end():
    files = {f"{n}.yaml": text(a=of_type(f"{n + 1}.yaml")) for n in range(9)} | {"9.yaml": text(a=SERVER)}
    with pytest.raises(InvalidInput, match="deep"):
        source(template(a=of_type("0.yaml")), files=files)
    assert set(source(template(a=of_type("7.yaml")), files=files).templates) == {"7.yaml", "8.yaml", "9.yaml"}


def test_files_that_use_each_other_many_times_are_counted_wherever_they_are_used():
    rows = {f"{n}.yaml": text(**{f"r{k}": of_type(f"{n + 1}.yaml") for k in range(40)}) for n in range(3)}
    with pytest.raises(InvalidInput, match=f"more than {MOST_RESOURCES} resources"):
        source(template(a=of_type("0.yaml")), files={**rows, "3.yaml": text(a=SERVER)})


def test_groups_are_priced_as_large_as_they_may_be():
    found = source(
        template(a=scaled(of_type("n.yaml"), max_size={"get_param": "most"}, desired_capacity=1)),
        files={"n.yaml": text(b=scaled(SERVER, max_size=7, min_size=1))},
        parameters={"most": 3},
    )
    largest = found.at_largest
    assert largest.template["resources"]["a"]["properties"]["desired_capacity"] == {"get_param": "most"}
    assert largest.templates["n.yaml"]["resources"]["b"]["properties"]["desired_capacity"] == 7
    assert found.template["resources"]["a"]["properties"]["desired_capacity"] == 1


NAMES = st.sampled_from(["n.yaml", "m.yaml", "http://e/x", "OS::Nova::Server", "OS::Heat::None", "X::Y", "boot.sh"])
INNER = st.recursive(
    st.builds(lambda kind: {"type": kind}, NAMES)
    | st.builds(lambda name: {"type": "OS::Heat::Value", "properties": {"value": {"get_file": name}}}, NAMES),
    lambda inner: st.builds(group, inner) | st.builds(lambda i: scaled(i, max_size=2), inner),
    max_leaves=3,
)
TEMPLATES = st.builds(
    lambda resources: template(**resources), st.dictionaries(st.sampled_from("abc"), INNER, max_size=3)
)


@given(TEMPLATES, TEMPLATES, TEMPLATES, st.dictionaries(NAMES, NAMES, max_size=2))
@settings(max_examples=cases(100))
def test_whatever_is_taken_names_known_types_and_files_alone(outer, n, m, registry):
    files = {"n.yaml": json.dumps(n), "m.yaml": json.dumps(m), "boot.sh": "http://e/x"}
    try:
        found = source(outer, files=files, environment={"resource_registry": registry})
    except InvalidInput:
        return
    kinds, wanted = set(), set()
    for each in (found.template, *found.templates.values()):
        _collect(each, kinds, wanted)
    assert {registry.get(kind, kind) for kind in kinds} <= KNOWN | found.templates.keys()
    assert wanted <= found.texts.keys()
    assert "http" not in json.dumps([found.template, dict(found.templates), found.environment])


def _collect(value, kinds, wanted):
    if isinstance(value, dict):
        if isinstance(value.get("type"), str):
            kinds.add(value["type"])
        if "get_file" in value:
            wanted.add(value["get_file"])
        for each in value.values():
            _collect(each, kinds, wanted)
