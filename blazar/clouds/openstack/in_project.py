# SPDX-License-Identifier: Apache-2.0
"""The service user as a member of a project of users: its tokens there, and the services by them.

Nova, Cinder and Heat make everything in the project of the token. The token of the service user is exchanged for one of
the project, in which it needs a role: ``member``, granted for whole domains (docs/install.md). There are no trusts, and
no secrets of users.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from keystoneauth1 import exceptions as ksa
from keystoneauth1.access import AccessInfoV3
from keystoneauth1.identity.v3.token import Token
from keystoneauth1.session import Session

from blazar.clouds.openstack.service import Service, brief
from blazar.model.clock import monotonic
from blazar.model.errors import RoleMissing


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
            return self._exchanged(session, **more)
        except ksa.Unauthorized as error:
            # Its own token may have been revoked: Keystone says the same then. The list renews it if need be.
            if self.project_id not in self._projects():
                raise self._missing(error) from error
        except (ksa.Forbidden, ksa.NotFound) as error:
            raise self._missing(error) from error
        return self._exchanged(session, **more)

    def _exchanged(self, session: Session, **more: Any) -> AccessInfoV3:
        self.auth_methods[0].token = self._own.get_token()
        found = super().get_auth_ref(session, **more)
        self.seen_at = monotonic()
        return found

    def _missing(self, error: Exception) -> RoleMissing:
        return RoleMissing(
            f"the service user has no role in project {self.project_id}, or may not exchange its token: {brief(error)}"
        )


@dataclass(frozen=True, slots=True)
class InProject:
    """The services of a cloud for the service user as a member of a project."""

    session: Session
    login: ProjectLogin
    compute: Service
    network: Service
    image: Service
    volume: Service
    orchestration: Service

    def log_in(self, seconds: float | None) -> None:
        """Ensure that there is a token; one that is at most so many seconds old (None: that has not ended)."""
        if seconds is not None and monotonic() - self.login.seen_at > seconds:
            self.session.invalidate()
        self.session.get_token()
