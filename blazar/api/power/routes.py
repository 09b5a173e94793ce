# SPDX-License-Identifier: Apache-2.0
"""``/v1/power``, from version 1.1 on: which hosts sleep, why, and what that saves; how each is switched, and wakes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial

from blazar.api.http.answers import Answer, link_pages
from blazar.api.http.context import Call
from blazar.api.http.queries import filter_by, option, paging
from blazar.api.http.readers import Choice, DateOrDuration, Name
from blazar.api.http.routes import ADMIN, Body, Caching, Parameter, Part, Root, Route, Rule, in_path
from blazar.api.http.shapes import LINKS, NUMBER, Json, a_list, an_object, ref
from blazar.api.power.components import (
    CHANGE,
    CHANGES,
    COMPONENTS,
    KEYS,
    render_host,
    render_move,
    render_report,
)
from blazar.api.resources.handlers import resource_id
from blazar.model.base.errors import InvalidInput
from blazar.model.base.values import dataclass
from blazar.model.power.addresses import PowerAdapter, PowerAddress
from blazar.model.power.hosts import PowerChange, PoweredHost, PowerQuestion
from blazar.model.power.settings import PowerPolicy
from blazar.model.power.states import PowerState
from blazar.model.resources.resource import HOST, VOLUME, ResourceKind

GET = Rule("blazar:power:get", ADMIN, "See which hosts sleep, why, and what that saves.")
PUT = Rule("blazar:power:put", ADMIN, "Set by what the power of a host is switched, and whether it ever is.")
WAKE = Rule("blazar:power:wake", ADMIN, "Wake a host that sleeps, and have it stay on for some hours.")


def report(call: Call) -> Json:
    """Show what sleeps and what that saves."""
    return {"power": render_report(call.manager.power.report(call.asked.one("from")))}


@dataclass(frozen=True, slots=True)
class Sleepers:
    """How some routes speak of what may sleep: its kind, the ``word`` for one and for all of it, and its id."""

    kind: ResourceKind
    word: str
    id_key: str

    @property
    def words(self) -> str:
        """Return the word for several."""
        return f"{self.word}s"

    def index(self, call: Call) -> Answer:
        """List what is registered with its power."""
        asked = call.asked
        question = PowerQuestion(asked.page("name"), asked.conditions, asked.one("text"))
        page = call.manager.power.page(question, self.kind)
        found: Json = {self.words: [asked.only(render_host(host)) for host in page.items]}
        return link_pages(found if page.count is None else {**found, "count": page.count}, page.following)

    def show(self, call: Call, **path: str) -> Json:
        """Show the power of one."""
        return self._render(call.manager.power.one(self._read_id(path), self.kind))

    def change(self, call: Call, **path: str) -> Json:
        """Change by what one is switched, and its policy; what is not sent, or is as it was shown, stays.

        There is no revision of power, and so no tag to insist on: what the service sets changes by itself.
        """
        id_ = self._read_id(path)
        read = cache(lambda: call.manager.power.one(id_, self.kind))
        body = call.changes(lambda: render_host(read()), current=lambda: None)
        if not body:
            return self._render(read())
        return self._render(call.manager.power.change(id_, _read_change(body, read), self.kind))

    def wake(self, call: Call, **path: str) -> Json:
        """Wake one, or have it stay on."""
        return self._render(call.manager.power.wake(self._read_id(path), self.kind))

    def log(self, call: Call, **path: str) -> Answer:
        """List what has become of the power of one."""
        page = call.manager.power.log(self._read_id(path), call.asked.page("id"), self.kind)
        found: Json = {"log": list(map(render_move, page.items))}
        return link_pages(found if page.count is None else {**found, "count": page.count}, page.following)

    def _read_id(self, path: Mapping[str, str]) -> str:
        return resource_id(self.kind, path[self.id_key])

    def _render(self, found: PoweredHost) -> Json:
        return {self.word: render_host(found)}


def _read_change(body: Json, read: Callable[[], PoweredHost]) -> PowerChange:
    """Return the change that a body asks for of a host that is ``read``; InvalidInput."""
    policy = PowerPolicy(body["policy"]) if "policy" in body else None
    if "adapter" not in body and "target" not in body:
        return PowerChange(policy=policy)
    if not ("adapter" in body and "target" in body) and (address := read().power.address) is not None:
        body = {"adapter": str(address.adapter), "target": address.target, **body}
    adapter, target = body.get("adapter"), body.get("target")
    if adapter is None and target is None:
        return PowerChange(removes_address=True, policy=policy)
    if adapter is None or target is None:
        missing, there = ("target", "adapter") if target is None else ("adapter", "target")
        raise InvalidInput(f"{missing} is missing; give adapter and target together, or null for both", at=f"/{there}")
    return PowerChange(PowerAddress(PowerAdapter(adapter), target), policy=policy)


_route = partial(Route, root=Root.V1, caching=Caching.NONE)


def _routes_of(sleepers: Sleepers) -> tuple[Route, ...]:
    """Return the routes about what may sleep of a kind."""
    word, id_ = sleepers.word, in_path(sleepers.id_key, f"the id of the {sleepers.word}")
    path = f"/power/{sleepers.words}/{{{sleepers.id_key}}}"
    on_one = partial(
        _route,
        path=path,
        parameters=(id_,),
        answers={200: an_object({word: ref("HostPower")})},
        errors=(404,),
    )
    return (
        _list_route(sleepers),
        on_one(
            method="GET",
            name=f"show_power_of_{word}",
            summary=f"Show the power of a {word}",
            handler=sleepers.show,
            rule=GET,
        ),
        on_one(
            method="PUT",
            name=f"update_power_of_{word}",
            summary=f"Set by what a {word} is switched, and whether it ever is",
            handler=sleepers.change,
            rule=PUT,
            body=Body("HostPowerUpdate", CHANGE, CHANGES),
            errors=(404, 409),
        ),
        on_one(
            method="POST",
            path=f"{path}/wake",
            name=f"wake_{word}",
            summary=f"Wake a {word}, and have it stay on for four hours",
            handler=sleepers.wake,
            rule=WAKE,
            errors=(404, 409),
        ),
        _log_route(sleepers, path, id_),
    )


def _log_route(sleepers: Sleepers, path: str, id_: Parameter) -> Route:
    return _route(
        method="GET",
        path=f"{path}/log",
        name=f"list_power_log_of_{sleepers.word}",
        summary=f"List what has become of the power of a {sleepers.word}",
        handler=sleepers.log,
        rule=GET,
        answers={200: _page("log", "PowerMove")},
        errors=(404,),
        parameters=(id_, *paging(["id"])),
    )


def _list_route(sleepers: Sleepers) -> Route:
    return _route(
        method="GET",
        path=f"/power/{sleepers.words}",
        name=f"list_power_of_{sleepers.words}",
        summary=f"List {sleepers.words} with their power",
        handler=sleepers.index,
        rule=GET,
        answers={200: _page(sleepers.words, "HostPowerInList")},
        parameters=(
            filter_by("state", Choice(tuple(map(str, PowerState))), "the power state"),
            filter_by("policy", Choice(tuple(map(str, PowerPolicy))), "the policy"),
            filter_by("adapter", Choice((*map(str, PowerAdapter), "none")), "the adapter; none: without one"),
            option("text", Name(255), "a part of the name"),
            *paging(["name"], fields=KEYS),
        ),
    )


def _page(key: str, component: str) -> Json:
    return an_object({key: a_list(ref(component)), "count": NUMBER, "links": LINKS}, optional=("count",))


PART = Part(
    "power",
    routes=(
        _route(
            method="GET",
            path="/power",
            name="show_power",
            summary="Show which hosts sleep, why, and what that saves",
            handler=report,
            rule=GET,
            answers={200: an_object({"power": ref("PowerReport")})},
            parameters=(option("from", DateOrDuration(backward=True), "from when on is summed up; by default -P30D"),),
        ),
        *_routes_of(Sleepers(HOST, "host", "host_id")),
        *_routes_of(Sleepers(VOLUME, "pool", "pool_id")),
    ),
    rules=(GET, PUT, WAKE),
    components=COMPONENTS,
)
