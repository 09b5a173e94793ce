# SPDX-License-Identifier: Apache-2.0
"""The options of ``[reports]``."""

from __future__ import annotations

import pytest

from blazar.cmd.config import ConfigurationError
from tests.configured import Configured


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("lines", "begin"), [((), "2030-04-01T00:00:00Z"), (("time_zone = Europe/Paris",), "2030-03-31T22:00:00Z")]
)
def test_days_are_those_of_the_zone_of_the_file(tmp_path, lines, begin):
    service = Configured(tmp_path, "[reports]", *lines)
    report = service.ask("GET", "/v1/reports/usage?from=2030-04-01&to=2030-04-02").json["report"]
    assert report["from"] == begin


def test_a_zone_that_there_is_not_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match="time_zone cannot be .Paris.: there is no such time zone"):
        Configured(tmp_path, "[reports]", "time_zone = Paris")


@pytest.mark.sample(1)
@pytest.mark.parametrize(("lines", "status"), [((), 400), (("properties = gpu, vcpus",), 200)])
def test_forecasts_tell_properties_apart_that_the_file_names(tmp_path, lines, status):
    service = Configured(tmp_path, "[reports]", *lines)
    assert service.ask("GET", "/v1/reports/forecast?group_by=property&property=vcpus").status_code == status
