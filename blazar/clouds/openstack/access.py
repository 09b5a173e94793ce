# SPDX-License-Identifier: Apache-2.0
"""The services of a cloud over one session, and the tokens of the service user for others."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

import requests
from keystoneauth1 import exceptions as ksa
from keystoneauth1.access import AccessInfoV3
from keystoneauth1.adapter import Adapter
from keystoneauth1.identity.base import BaseIdentityPlugin
from keystoneauth1.identity.v3.token import Token
from keystoneauth1.session import Session
from requests.adapters import HTTPAdapter

from blazar import __version__
from blazar.clouds.openstack.breaker import PATIENCE, Breaker
from blazar.clouds.openstack.bulkhead import Bulkhead
from blazar.clouds.openstack.options import Credentials
from blazar.clouds.openstack.service import LOOK_SECONDS, CloudService, brief
from blazar.model.base.clock import monotonic
from blazar.model.base.errors import CloudRefused, CloudUnavailable, RoleMissing
from blazar.model.base.values import dataclass


class ProjectLogin(Token):  # type: ignore[misc]  # a library without types
    """Logs in to a project with the present token of the service user, as often as it is needed.

    A token that comes of another ends with it. ``projects`` returns the ids of the projects with a role.
    """

    def __init__(self, own: Session, auth_url: str, project_id: str, projects: Callable[[], Collection[str]]) -> None:
        super().__init__(auth_url, "", project_id=project_id)
        self.seen_at = -1e9
        self._own = own
        self._projects = projects

    def get_auth_ref(self, session: Session, **more: Any) -> AccessInfoV3:
        """Return a new login; RoleMissing."""
        if not self.auth_url:
            raise RoleMissing("the service user logs in without the URL of Keystone, so it has no role in any project")
        try:
            return self._exchange_token(session, **more)
        except ksa.Unauthorized as error:
            # Its own token may have been revoked: Keystone says the same then. The list renews it if need be.
            if self.project_id not in self._projects():
                raise self._role_missing(error) from error
        except (ksa.Forbidden, ksa.NotFound) as error:
            raise self._role_missing(error) from error
        return self._exchange_token(session, **more)

    def _exchange_token(self, session: Session, **more: Any) -> AccessInfoV3:
        self.auth_methods[0].token = self._own.get_token()
        found = super().get_auth_ref(session, **more)
        self.seen_at = monotonic()
        return found

    def _role_missing(self, error: Exception) -> RoleMissing:
        return RoleMissing(
            f"the service user has no role in project {self.project_id}, or may not exchange its token: {brief(error)}"
        )


@dataclass(frozen=True, slots=True)
class InProject:
    """The services of a cloud for the service user as a member of a project."""

    session: Session
    login: ProjectLogin
    compute: CloudService
    network: CloudService
    image: CloudService
    volume: CloudService
    orchestration: CloudService

    def log_in(self, seconds: float | None) -> None:
        """Ensure that there is a token; one that is at most so many seconds old (None: that has not ended)."""
        if seconds is not None and monotonic() - self.login.seen_at > seconds:
            self.session.invalidate()
        self.session.get_token()


@dataclass(frozen=True, slots=True)
class _ServiceType:
    """How a service is found in the catalog: its type there, and the versions of its API that are spoken."""

    type: str
    oldest: str
    newest: str
    interface: str = ""
    """Its name where interfaces are configured; empty: the type."""


_NOVA = _ServiceType("compute", "2", "2.latest")
_PLACEMENT = _ServiceType("placement", "1", "1.latest")
_GLANCE = _ServiceType("image", "1", "2.latest")
_NEUTRON = _ServiceType("network", "2", "2.latest")
_CINDER = _ServiceType("block-storage", "2", "3.latest", "block_storage")
_HEAT = _ServiceType("orchestration", "1", "1.latest")
_IRONIC = _ServiceType("baremetal", "1", "1.latest")


class _NeutronAdapter(Adapter):  # type: ignore[misc]  # a library without types
    """Neutron, whose list of versions not every cloud serves: its version is part of the endpoint."""

    def get_endpoint(self, auth: BaseIdentityPlugin | None = None, **more: Any) -> str | None:
        """Return the endpoint in the catalog, with the version; None if there is none."""
        url = super().get_endpoint(auth, **more, skip_discovery=True)
        return url if url is None or url.endswith("v2.0") else f"{url.rstrip('/')}/v2.0"


PROJECTS = 200
"""Projects whose services are kept."""
RECENT_SECONDS = 120.0
"""How long a role that was seen counts as there."""

POOL = 256
"""Connections to one service that stay open: as many as a manager has threads that may call concurrently.

Further ones are closed after one call each."""


class _Transport(requests.Session):
    """A session that reads the environment once for each service instead of before each call.

    Reading it (proxies, certificates) takes a sixth of the time of a call, and it stays the same while a process runs.
    """

    def __init__(self) -> None:
        super().__init__()
        self._found: dict[tuple[object, ...], Mapping[str, Any]] = {}

    def merge_environment_settings(
        self, url: str | bytes | None, proxies: Any, stream: Any, verify: Any, cert: Any
    ) -> Any:
        """Return the settings for a call."""
        if proxies:
            return super().merge_environment_settings(url, proxies, stream, verify, cert)
        parts = urlsplit(str(url))
        key = (parts.scheme, parts.netloc, stream, verify, cert)
        if key not in self._found:
            self._found[key] = super().merge_environment_settings(url, proxies, stream, verify, cert)
        return {**self._found[key], "proxies": dict(self._found[key]["proxies"])}


class Access:
    """The services of one cloud, over one session. Nothing is called before it is needed."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._transport = _Transport()
        self._where = f" of {credentials.region}" if credentials.region else ""
        self._breakers: dict[str, Breaker] = {}
        for scheme in ("http://", "https://"):
            self._transport.mount(scheme, HTTPAdapter(pool_maxsize=POOL))
        self.session = self._make_session(credentials.auth)
        self.compute = self._service("Nova", _NOVA, self.session)
        self.placement = self._service("Placement", _PLACEMENT, self.session)
        self.image = self._service("Glance", _GLANCE, self.session)
        self.network = self._service("Neutron", _NEUTRON, self.session)
        self.volume = self._service("Cinder", _CINDER, self.session)
        self.orchestration = self._service("Heat", _HEAT, self.session)
        self.baremetal = self._service("Ironic", _IRONIC, self.session)
        self._auth_url = getattr(credentials.auth, "auth_url", None)
        self._projects: OrderedDict[str, InProject] = OrderedDict()
        self._lock = threading.Lock()

    def list_looks(self) -> Mapping[str, Callable[[], None]]:
        """Return what looks whether a service answers, and raises CloudUnavailable, by the names of services."""
        services = (self.compute, self.placement, self.image, self.network, self.volume, self.orchestration)
        return {"keystone": self._look_at_keystone} | {service.name: service.look for service in services}

    def _look_at_keystone(self) -> None:
        if not self._auth_url:
            return
        try:
            self.session.get(self._auth_url, authenticated=False, timeout=LOOK_SECONDS)
        except (ksa.ClientException, requests.RequestException) as error:
            raise CloudUnavailable(f"Keystone does not answer: {brief(error)}") from error

    def in_project(self, project_id: str, *, recent: bool = False) -> InProject:
        """Return the services for the service user as a member of another project. RoleMissing, CloudUnavailable.

        They are kept, and log in again when their token ends. ``recent``: the role was seen within the last minutes.
        """
        with self._lock:
            found = self._projects.get(project_id)
            if found is None:
                found = self._projects[project_id] = self._make_in_project(project_id)
            self._projects.move_to_end(project_id)
            while len(self._projects) > PROJECTS:
                self._projects.popitem(last=False)
        try:
            found.log_in(RECENT_SECONDS if recent else None)
        except (ksa.ClientException, requests.RequestException) as error:
            raise CloudUnavailable(f"Keystone cannot be reached: {brief(error)}") from error
        return found

    def _make_in_project(self, project_id: str) -> InProject:
        plugin = ProjectLogin(self.session, str(self._auth_url or ""), project_id, self.projects_with_role)
        session = self._make_session(plugin)
        return InProject(
            session,
            plugin,
            compute=self._service("Nova", _NOVA, session),
            network=self._service("Neutron", _NEUTRON, session),
            image=self._service("Glance", _GLANCE, session),
            volume=self._service("Cinder", _CINDER, session),
            orchestration=self._service("Heat", _HEAT, session),
        )

    def _make_session(self, auth: BaseIdentityPlugin) -> Session:
        credentials = self._credentials
        return Session(
            auth=auth,
            session=self._transport,
            verify=credentials.verify,
            cert=credentials.cert,
            timeout=credentials.timeout,
            app_name="blazar",
            app_version=__version__,
        )

    def _make_adapter(self, service: _ServiceType, session: Session) -> Adapter:
        """Return what sends requests to a service: it logs in, and looks for the endpoint, with the first of them.

        It is keystoneauth's own, as openstacksdk imports its classes of all services with the first of them.
        """
        credentials = self._credentials
        adapter = _NeutronAdapter if service is _NEUTRON else Adapter
        return adapter(
            session=session,
            service_type=credentials.compute_service if service is _NOVA else service.type,
            interface=credentials.interfaces.get(service.interface or service.type, "public"),
            region_name=credentials.region,
            min_version=service.oldest,
            max_version=service.newest,
        )

    def log_in(self) -> str:
        """Log in and return the id of the service user's project. CloudUnavailable, CloudRefused."""
        try:
            return str(self.session.get_project_id())
        except (ksa.Unauthorized, ksa.NotFound) as error:
            raise CloudRefused(f"Keystone does not accept the service user: {brief(error)}") from error
        except (ksa.ClientException, requests.RequestException) as error:
            raise CloudUnavailable(f"Keystone cannot be reached: {brief(error)}") from error

    def user_id(self) -> str:
        """Return the id of the service user. CloudUnavailable."""
        try:
            return str(self.session.get_user_id())
        except (ksa.ClientException, requests.RequestException) as error:
            raise CloudUnavailable(f"Keystone cannot be reached: {brief(error)}") from error

    def projects_with_role(self) -> frozenset[str]:
        """Return the ids of the projects in which the service user has a role. CloudUnavailable, CloudRefused."""
        url = str(self._auth_url or "").rstrip("/")
        if not url:
            return frozenset()
        try:
            answer = self.session.get(f"{url if url.endswith('/v3') else url + '/v3'}/auth/projects")
            return frozenset(str(project["id"]) for project in answer.json()["projects"])
        except (ksa.Unauthorized, ksa.Forbidden, ksa.NotFound) as error:
            raise CloudRefused(f"Keystone does not say where the service user has a role: {brief(error)}") from error
        except (ksa.ClientException, requests.RequestException, ValueError, KeyError) as error:
            raise CloudUnavailable(f"Keystone cannot be reached: {brief(error)}") from error

    def _service(self, name: str, service: _ServiceType, session: Session) -> CloudService:
        credentials = self._credentials
        breaker = self._breakers.get(name)
        if breaker is None:
            breaker = self._breakers.setdefault(
                name,
                Breaker(
                    f"{name}{self._where}",
                    patience=min(PATIENCE, credentials.timeout),
                    bulkhead=Bulkhead(f"{name}{self._where}", credentials.region or ""),
                    region=credentials.region or "",
                ),
            )
        adapter = self._make_adapter(service, session)
        return CloudService(name, adapter, timeout=credentials.timeout, attempts=credentials.attempts, breaker=breaker)


class ServiceUser:
    """Tokens of the service user, cached by the session until they expire."""

    def __init__(self, session: Session) -> None:
        self._make_session = session

    def token(self) -> str:
        """Return a valid token; CloudUnavailable if Keystone issues none."""
        try:
            return str(self._make_session.get_token())
        except (ksa.ClientException, requests.RequestException) as error:
            raise CloudUnavailable(
                f"Keystone does not issue a token for the service user ({type(error).__name__})"
            ) from error

    def renew(self) -> None:
        """Discard the cached token."""
        self._make_session.invalidate()
