# SPDX-License-Identifier: Apache-2.0
"""What a request for a reservation of a stack may have."""

from __future__ import annotations

from blazar.resources.schemas import Schema, a_choice, a_request

_YAML = "application/yaml"
_DOCUMENT: Schema = {"type": ["object", "string", "null"], "contentMediaType": _YAML, "default": None}

SCHEMA = a_request(
    {
        "template": {
            "type": ["object", "string"],
            "contentMediaType": _YAML,
            "title": "Template",
            "description": "a template of Heat, as YAML text or as an object",
        },
        "files": {
            "type": ["object", "null"],
            "additionalProperties": {
                "type": "string",
                "contentMediaType": "text/plain",
                "description": "the text of the file",
            },
            "title": "Files",
            "description": "the texts of files that the template names, by name",
            "default": None,
        },
        "environment": {**_DOCUMENT, "title": "Environment", "description": "an environment of Heat"},
        "parameters": {**_DOCUMENT, "title": "Parameters", "description": "values of parameters, by name"},
        "stack_name": {
            "type": ["string", "null"],
            "maxLength": 255,
            "title": "Name",
            "description": "a name that no other stack of the project has, or null",
            "default": None,
        },
        "timeout_mins": {
            "type": ["integer", "null"],
            "minimum": 1,
            "maximum": 1440,
            "title": "Minutes to make it",
            "description": "a whole number of minutes, or null",
            "default": None,
        },
        "before_end": a_choice("default", "none", "notification", "snapshot", title="At the end"),
    },
    required=("template",),
    fixed=("template", "files", "environment", "parameters", "stack_name", "timeout_mins", "before_end"),
    example={
        "template": {
            "heat_template_version": "2018-08-31",
            "resources": {
                "web": {"type": "OS::Nova::Server", "properties": {"flavor": "m1.small", "image": "ubuntu"}},
            },
        },
        "stack_name": "web",
    },
)
