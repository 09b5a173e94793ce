# SPDX-License-Identifier: Apache-2.0
"""Hostile texts by name: they are large, deep or odd, or ask for much work with few characters."""

from __future__ import annotations

import json
from collections.abc import Mapping


def filled(piece: str, size: int, begin: str = "", end: str = "") -> str:
    """Return a text of that many characters."""
    return begin + piece * ((size - len(begin) - len(end)) // len(piece)) + end


def yaml_texts(size: int) -> Mapping[str, str]:
    head = "heat_template_version: 2018-08-31\n"
    return {
        "values": filled("1,", size, f"{head}a: [", "]"),
        "lines": filled("- 1\n", size, f"{head}a:\n"),
        "keys": head + "".join(f"k{n}: v\n" for n in range(size // 9)),
        "quotes": filled('"",', size, f"{head}a: [", "]"),
        "deep": filled("[", size, head + "a: "),
        "deep objects": filled("{a: ", size, head + "a: "),
        "deep lines": filled("- ", size, head + "a:\n "),
        "questions": filled("? ", size, head),
        "directives": "".join(f"%TAG !{n}! b{n}\n" for n in range(size // 15)),
        "directives after a mark": "\ufeff" + "".join(f"%TAG !{n}! b\n" for n in range(size // 15)),
        "base 60": filled("1:", size, f"{head}a: ", "1"),
        "base 60 with a fraction": filled("1:", size, f"{head}a: ", "1.5"),
        "digits": filled("9", size, f"{head}a: "),
        "hexadecimal": filled("f", size, f"{head}a: 0x"),
        "octal": filled("7", size, f"{head}a: 0"),
        "fraction": filled("1", size, f"{head}a: 1."),
        "underlines": filled("_", size, f"{head}a: 1", "1"),
        "exponent": filled("9", size, f"{head}a: 1.0e+"),
        "largest of a tag": f"{head}a: !!float {'9' * 319}",
        "tags": filled("!!str ", size, f"{head}a: "),
        "long tag": filled("x", size, f"{head}a: !"),
        "anchors": head + "".join(f"k{n}: &a{n} 1\n" for n in range(size // 14)),
        "aliases": filled("*x,", size, f"{head}x: &x [1, 2, 3, 4, 5, 6]\na: [", "]"),
        "laughs": head + "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{f'*a{n - 1},' * 9}]\n" for n in range(1, 99)),
        "long aliases": filled("*x,", size // 2, f"{head}x: &x {'x' * (size // 3)}\na: [", "]"),
        "merges": filled("- <<: *x\n", size, f"{head}x: &x {{{', '.join(f'k{n}: 1' for n in range(900))}}}\na:\n"),
        "nested merges": head
        + "a0: &a0 {b: c}\n"
        + "".join(f"a{n}: &a{n} {{<<: *a{n - 1}}}\n" for n in range(1, size // 25)),
        "comments": filled("#\n", size, head),
        "blanks": filled(" ", size, head + "a: ", "b"),
        "empty lines": filled("\n", size, head),
        "folded": filled("a\n ", size, head + "a: >\n "),
        "plain over lines": filled("\n b", size, head + "a: b"),
        "escapes": filled("\\x41", size, head + 'a: "', '"'),
        "documents": filled("---\n", size, head),
    }


def stack_texts() -> Mapping[str, str]:
    """Return requests for a stack, as JSON: what is little by itself, and much together."""
    version = "heat_template_version: 2018-08-31\n"
    bomb = version + "x: &x [1,1,1,1,1,1,1,1]\ny: &y [*x,*x,*x,*x,*x,*x,*x,*x]\nz: [*y,*y,*y,*y,*y,*y]\nresources: {}"
    using = "".join(f"  r{n}: {{type: f{n}.yaml}}\n" for n in range(100))
    groups = "".join(
        f"  r{n}: {{type: 'OS::Heat::ResourceGroup', properties: {{count: 1, resource_def: {{type: f.yaml}}}}}}\n"
        for n in range(300)
    )
    chains = {f"f{n}.yaml": f"{version}resources: {{a: {{type: f{n + 1}.yaml}}}}" for n in range(100)}
    server = "a: {type: 'OS::Nova::Server'}"
    given = {
        "bombs in files": {
            "template": f"{version}resources:\n{using}",
            "files": {f"f{n}.yaml": bomb for n in range(100)},
        },
        "one file often": {
            "template": f"{version}resources:\n{groups}",
            "files": {"f.yaml": f"{version}resources: {{{server}}}\nx: [{'1,' * 2000}]"},
        },
        "files in files": {"template": f"{version}resources: {{a: {{type: f0.yaml}}}}", "files": chains},
        "many files": {
            "template": f"{version}resources: {{{server}}}",
            "files": {f"{n}": "x" for n in range(8000)},
        },
        "hidden parameters": {
            "template": version
            + "parameters:\n"
            + "".join(f"  p{n}: {{type: string, hidden: true}}\n" for n in range(400))
            + f"resources: {{{server}}}",
            "parameters": {f"p{n}": "x" for n in range(400)},
        },
    }
    as_objects = {"template": {"heat_template_version": "2018-08-31", "resources": {}, "a": [[]] * 9000}}
    return {name: json.dumps(each) for name, each in {**given, "objects": as_objects}.items()}


def json_texts(size: int) -> Mapping[str, str]:
    return {
        "objects": filled("{},", size, '{"a":[', "{}]}"),
        "lists": filled("[],", size, '{"a":[', "[]]}"),
        "numbers": filled("1,", size, '{"a":[', "1]}"),
        "fractions": filled("1.5,", size, '{"a":[', "1]}"),
        "texts": filled('"",', size, '{"a":[', '""]}'),
        "keys": '{"a":{' + ",".join(f'"{n:x}":1' for n in range(size // 10)) + "}}",
        "most objects": '{"a":[' + filled("{},", min(size, 3 * 49_990), end="{}") + "]}",
        "most fractions": '{"a":[' + filled("1.5,", min(size, 4 * 49_990), end="1") + "]}",
        "most keys": '{"a":{' + ",".join(f'"{n:x}":1' for n in range(min(size // 10, 49_990))) + "}}",
        "the same key": filled('"a":1,', size, "{", '"a":1}'),
        "deep": filled("[", size, '{"a":'),
        "deep objects": filled('{"a":', size),
        "deep and closed": '{"a":' + "[" * (size // 2 - 9) + "]" * (size // 2 - 9) + "}",
        "text": filled("x", size, '{"a":"', '"}'),
        "escapes": filled("\\u0041", size, '{"a":"', '"}'),
        "halves of characters": filled("\\ud800", size, '{"a":"', '"}'),
        "escaped quotes": filled('\\"', size, '{"a":"'),
        "quotes": filled('"', size, '{"a":'),
        "digits": filled("9", size, '{"a":', "}"),
        "long numbers": filled("9" * 4300 + ",", size, '{"a":[', "1]}"),
        "exponent": filled("9", size, '{"a":1e', "}"),
        "infinite": '{"a":1e400}',
        "Infinity": '{"a":Infinity}',
        "NaN": '{"a":NaN}',
        "fraction": filled("1", size, '{"a":0.', "}"),
        "blanks": filled(" ", size, "{", "}"),
    }


def requirement_texts(size: int) -> Mapping[str, str]:
    comparison = '["==","$a","b"],'
    return {
        **{name: text.removeprefix('{"a":').removesuffix("}") for name, text in json_texts(size).items()},
        "or": filled(comparison, size, '["or",', '["==","$a","b"]]'),
        "most parts": filled(comparison, 999 * len(comparison), '["or",', '["==","$a","b"]]'),
        "not": '["not",' * 999 + "[]" + "]" * 999,
        "in": filled("1,", size, '["in","$a",[', "1]]"),
        "long value": '["==","$a","' + "1" * (size - 20) + '"]',
        "long number": '["==","$a",' + "1" * 4300 + "]",
        "infinite": '["==","$a",1e400]',
    }
