# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus, and the rules that operators copy, thirty times as fast."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.slow.alerts.programs import TIMES

RULES = Path(__file__).parents[3] / "deploy" / "monitoring" / "alerts.yaml"
SCRAPES = "500ms"
UNITS = {"s": 1, "m": 60, "h": 3600}
DURATION = re.compile(r"(\d+)([smh])")


def free_port() -> int:
    """Return a port of this machine on which nobody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def seconds(duration: str) -> float:
    """Return the seconds of a duration of Prometheus."""
    match = DURATION.fullmatch(duration)
    assert match, duration
    return int(match[1]) * UNITS[match[2]]


def hasten(rule: Mapping[str, Any]) -> dict[str, Any]:
    """Return a rule in which each duration, and each age that is compared, is a thirtieth."""

    def shorter(duration: str) -> str:
        return f"{seconds(duration) * 1000 / TIMES:.0f}ms"

    expression = re.sub(r"\[(\d+[smh])\]", lambda match: f"[{shorter(match[1])}]", rule["expr"])
    if re.search(r"_age_seconds|_timestamp_seconds", expression):
        expression = re.sub(r"> (\d+)", lambda match: f"> {int(match[1]) / TIMES:g}", expression)
    return {**rule, "expr": expression, "for": shorter(rule.get("for", "0s"))}


def patience(rule: Mapping[str, Any]) -> float:
    """Return the seconds, as they pass here, within which a rule fires: its range, its ``for``, and a few scrapes."""
    ranges = [seconds(found) for found in re.findall(r"\[(\d+[smh])\]", rule["expr"])]
    ages = [int(age) for age in re.findall(r"> (\d+)", rule["expr"]) if "_seconds" in rule["expr"]]
    return (max([0.0, *ranges, *ages]) + seconds(rule.get("for", "0s"))) / TIMES + 25


class Prometheus:
    """The server; ``ports`` are those of each job."""

    def __init__(self, program: str, folder: Path, ports: Mapping[str, int]) -> None:
        self._url = f"http://127.0.0.1:{free_port()}"
        groups = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
        self.rules = {rule["alert"]: rule for group in groups for rule in group["rules"]}
        hastened = [{**group, "rules": [hasten(rule) for rule in group["rules"]]} for group in groups]
        (folder / "alerts.yaml").write_text(yaml.safe_dump({"groups": hastened}), "utf-8")
        scrapes = [
            {"job_name": job, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]} for job, port in ports.items()
        ]
        times = {"scrape_interval": SCRAPES, "scrape_timeout": SCRAPES, "evaluation_interval": SCRAPES}
        settings = {"global": times, "rule_files": ["alerts.yaml"], "scrape_configs": scrapes}
        (folder / "prometheus.yml").write_text(yaml.safe_dump(settings), "utf-8")
        self._log = (folder / "prometheus.log").open("w")
        self.process = subprocess.Popen(
            [
                program,
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'prometheus'}",
                f"--web.listen-address={self._url.removeprefix('http://')}",
                "--log.level=warn",
            ],
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )

    def end(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait(30)
        self._log.close()

    def firing(self) -> set[str]:
        """Return the names of the alerts that fire."""
        alerts = self._ask("/api/v1/alerts")["alerts"]
        return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}

    def value(self, query: str) -> list[float]:
        """Return the values of an expression now."""
        return [float(one["value"][1]) for one in self._ask(f"/api/v1/query?query={query}")["result"]]

    def await_alert(self, name: str, limit: float) -> float:
        """Wait until an alert fires; return the seconds that it took."""
        return self._await(lambda firing: name in firing, limit, f"{name} does not fire")

    def await_silence(self, limit: float, *, but: frozenset[str] = frozenset()) -> float:
        """Wait until no alert fires but some; return the seconds that it took."""
        return self._await(lambda firing: firing <= but, limit, "alerts go on")

    def _await(self, is_so: Any, limit: float, else_said: str) -> float:
        begin = time.monotonic()
        firing: set[str] = set()
        while (took := time.monotonic() - begin) < limit:
            try:
                firing = self.firing()
            except OSError:
                # It has only just been started.
                firing = {"Prometheus"}
            if is_so(firing):
                return took
            time.sleep(0.2)
        raise AssertionError(f"{else_said} within {limit:.0f} s: {sorted(firing)}")

    def _ask(self, path: str) -> Any:
        with urllib.request.urlopen(self._url + path, timeout=10) as answer:
            return json.load(answer)["data"]
