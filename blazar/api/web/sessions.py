# SPDX-License-Identifier: Apache-2.0
"""Sessions of the pages: a cookie of our own pages becomes the token that Keystone's guard validates.

In standalone mode there is none: a page sends the name that its user has chosen as the token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from werkzeug.wrappers import Request, Response

from blazar.api.http.access import Wsgi
from blazar.api.web import bodies, cookies
from blazar.api.web.answers import PageRefusal, answer
from blazar.api.web.attempts import Attempts
from blazar.api.web.cookies import Named, Sealer, Session
from blazar.api.web.keystone import Keystone
from blazar.api.web.origin import as_seen_at, check_site, check_token, client_address, is_loopback, own_origin
from blazar.api.web.pages import SESSION
from blazar.api.web.signing_in import Clocks, SessionSettings, SigningIn, signed_out

_PROJECT = f"{SESSION}/project"
_API = "/v1"


class Sessions:
    """Serves ``/ui/session``, and gives requests of signed-in pages to the API their token.

    Programs send ``X-Auth-Token`` and no cookie; for them nothing changes. No cookie reaches the application.
    """

    def __init__(self, app: Wsgi, keystone: Keystone, settings: SessionSettings, clocks: Clocks) -> None:
        self._app = app
        self._settings = settings
        self._sealer = Sealer(settings.keys)
        self._now = clocks.now
        self._signing = SigningIn(keystone, self._sealer, settings, Attempts(clocks.monotonic))

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Serve a request."""
        path = environ.get("PATH_INFO", "")
        header = environ.pop("HTTP_COOKIE", "")
        try:
            if path == SESSION or path.startswith(f"{SESSION}/"):
                return self._serve(environ, header)(environ, start_response)
            is_api = path == _API or path.startswith(f"{_API}/")
            if is_api and header and not environ.get("HTTP_X_AUTH_TOKEN"):
                return self._api(environ, header, start_response)
        except PageRefusal as refusal:
            return refusal.response()(environ, start_response)
        return self._app(environ, start_response)

    def _api(self, environ: dict[str, Any], header: str, start_response: Callable[..., Any]) -> Iterable[bytes]:
        session = self._opened(environ, header)
        if session is not None:
            self._check(environ, session)
            environ["HTTP_X_AUTH_TOKEN"] = session.scoped
            if self._settings.public_url is not None:
                # Links in answers are for the browser.
                environ.update(as_seen_at(self._settings.public_url))

        def personal(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            kept = [(name, value) for name, value in headers if name.lower() != "vary"]
            varies = [value for name, value in headers if name.lower() == "vary"]
            return start_response(status, [*kept, ("Vary", ", ".join([*varies, "Cookie"]))], *more)

        return self._app(environ, personal)

    def _serve(self, environ: dict[str, Any], header: str) -> Response:
        request = Request(environ)
        method = "GET" if request.method == "HEAD" else request.method
        match request.path, method:
            case (path, "GET") if path == SESSION:
                return self._show(request, header)
            case (path, "POST") if path == SESSION:
                return self._sign_in(request)
            case (path, "DELETE") if path == SESSION:
                return self._sign_out(request, header)
            case (path, "PUT") if path == _PROJECT:
                return self._switch(request, header)
        methods = {SESSION: "GET, HEAD, POST, DELETE", _PROJECT: "PUT"}.get(request.path)
        if methods is None:
            raise PageRefusal(404, "not_found", "This URL does not exist; a page asks /ui/session.")
        response = PageRefusal(405, "method_not_allowed", f"This URL supports {methods}.").response()
        response.headers["Allow"] = methods
        return response

    def _show(self, request: Request, header: str) -> Response:
        session = self._opened(request.environ, header)
        if session is None:
            return self._nobody(request, header)
        self._check(request.environ, session)
        try:
            return answer(self._shown(session, self._signing.projects(session, self._address(request))))
        except PageRefusal as refusal:
            if refusal.status != 401:
                raise
            return self._nobody(request, header)

    def _sign_in(self, request: Request) -> Response:
        own = self._own(request.environ)
        check_site(request.environ, own)
        if not own.startswith("https:") and not is_loopback(own):
            raise PageRefusal(
                403, "https", "Browsers keep the cookie of a session over https only; open the https address."
            )
        session, projects = self._signing.sign_in(bodies.sign_in(request), self._address(request))
        return self._with_cookie(request, session, projects)

    def _switch(self, request: Request, header: str) -> Response:
        session = self._opened(request.environ, header)
        if session is None:
            raise signed_out()
        check_site(request.environ, self._own(request.environ))
        check_token(request.environ, session.csrf)
        asked = bodies.other_project(request)
        switched, projects = self._signing.switch(session, asked.project, self._address(request))
        return self._with_cookie(request, switched, projects)

    def _sign_out(self, request: Request, header: str) -> Response:
        check_site(request.environ, self._own(request.environ))
        session = self._opened(request.environ, header)
        if session is not None:
            check_token(request.environ, session.csrf)
        has_ended = session is None or self._signing.sign_out(session, self._address(request))
        told: dict[str, Any] = {"revoked": has_ended}
        if session is not None and not has_ended:
            until = session.expires_at.strftime("%Y-%m-%dT%H:%M:%SZ")
            told["detail"] = f"Keystone does not answer, so your token remains valid until {until}."
        response = answer(told)
        response.headers["Set-Cookie"] = cookies.header(self._cookie(request.environ), "")
        response.headers["Clear-Site-Data"] = '"cache", "storage"'
        return response

    def _check(self, environ: dict[str, Any], session: Session) -> None:
        """Raise PageRefusal unless one of our own pages makes the request, for the project that it shows."""
        check_site(environ, self._own(environ))
        check_token(environ, session.csrf)
        shown = environ.get("HTTP_X_BLAZAR_PROJECT")
        if shown is not None and shown != session.project.id:
            detail = f"Another tab has switched to the project {session.project.name}; nothing was done."
            raise PageRefusal(409, "other_project", detail, project=_project(session.project))

    def _nobody(self, request: Request, header: str) -> Response:
        refusal = signed_out()
        refusal.more.update(self._choices())
        response = refusal.response()
        name = self._cookie(request.environ)
        if cookies.read(header, name) is not None:
            response.headers["Set-Cookie"] = cookies.header(name, "")
        return response

    def _with_cookie(self, request: Request, session: Session, projects: tuple[Named, ...]) -> Response:
        value = self._sealer.seal(session)
        if len(value) > cookies.LONGEST:
            detail = "The tokens of this cloud are too long for a cookie; use the API or the command line."
            raise PageRefusal(500, "tokens_too_long", detail)
        response = answer(self._shown(session, projects))
        response.headers["Set-Cookie"] = cookies.header(self._cookie(request.environ), value)
        return response

    def _choices(self) -> dict[str, Any]:
        """Return what a sign-in page has to offer."""
        return {"mode": "keystone", "methods": list(self._settings.methods), "domains": list(self._settings.domains)}

    def _shown(self, session: Session, projects: tuple[Named, ...]) -> dict[str, Any]:
        """Return what a page may know of the session: everything but the tokens. It may have to ask for another one."""
        return {
            **self._choices(),
            "user": asdict(session.user),
            "project": _project(session.project),
            "roles": list(session.roles),
            "projects": [_project(project) for project in projects],
            "can_switch": session.unscoped is not None,
            "expires_at": session.expires_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "csrf_token": session.csrf,
        }

    def _opened(self, environ: dict[str, Any], header: str) -> Session | None:
        value = cookies.read(header, self._cookie(environ)) if header else None
        return None if value is None else self._sealer.open(value, self._now())

    def _cookie(self, environ: dict[str, Any]) -> str:
        own = self._own(environ)
        return cookies.NAME_ON_LOOPBACK if own.startswith("http:") and is_loopback(own) else cookies.NAME

    def _own(self, environ: dict[str, Any]) -> str:
        return own_origin(environ, self._settings.public_url)

    def _address(self, request: Request) -> str:
        return client_address(request.environ, self._settings.proxies)


def _project(project: Named) -> dict[str, str]:
    return {"id": project.id, "name": project.name, "domain_id": project.domain_id}


class StandaloneSession:
    """Tells the pages that there is no sign-in; everything else goes to the application behind it."""

    def __init__(self, app: Wsgi) -> None:
        self._app = app

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Serve a request."""
        app = self._app
        path = environ.get("PATH_INFO", "")
        if path == SESSION and environ["REQUEST_METHOD"] in ("GET", "HEAD"):
            app = answer({"mode": "standalone"})
        elif path == SESSION:
            detail = "Without Keystone there is no session; send X-Auth-Token: USER:PROJECT with each request."
            app = PageRefusal(405, "no_session", detail).response()
            app.headers["Allow"] = "GET, HEAD"
        elif path.startswith(f"{SESSION}/"):
            app = PageRefusal(404, "not_found", "This URL does not exist; a page asks /ui/session.").response()
        return app(environ, start_response)
