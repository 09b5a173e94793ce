# SPDX-License-Identifier: Apache-2.0
"""The web pages as files: where they are, what caches may keep, and what a browser may do with them."""

from __future__ import annotations

import gzip
import json

import pytest
from werkzeug.test import Client

from blazar.api.web.pages import Pages, read
from blazar.api.web.sessions import StandaloneSession

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
SCRIPT = b"export const answer = 42;" * 20
INDEX = (
    b'<link rel="stylesheet" href="./assets/main-1a2b.css"><script type="module" src="./assets/main-3c4d.js"></script>'
)


def behind(environ, start_response):
    """The application behind the pages: it tells the path that it is asked for."""
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [environ["PATH_INFO"].encode()]


@pytest.fixture
def folder(tmp_path):
    """Pages as they are built."""
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_bytes(INDEX)
    (tmp_path / "icon.svg").write_text("<svg/>", encoding="utf-8")
    (tmp_path / "assets" / "main-3c4d.js").write_bytes(SCRIPT)
    (tmp_path / "assets" / "main-3c4d.js.gz").write_bytes(gzip.compress(SCRIPT))
    (tmp_path / "assets" / "main-1a2b.css").write_text("a{}", encoding="utf-8")
    hashed = ("index.html", "assets/main-3c4d.js", "assets/main-1a2b.css")
    (tmp_path / "manifest.json").write_text(json.dumps({"files": {name: {} for name in hashed}}), encoding="utf-8")
    return tmp_path


@pytest.fixture
def http(folder):
    return Client(Pages(StandaloneSession(behind), read(folder)))


def test_a_folder_without_index_has_no_pages(tmp_path):
    assert read(tmp_path) is None


@pytest.mark.parametrize(
    ("accept", "location"),
    [
        (BROWSER["Accept"], "/ui/"),
        ("text/html", "/ui/"),
        ("*/*", None),
        ("application/json", None),
        ("application/json, text/html;q=0.5", None),
        ("", None),
    ],
)
def test_a_browser_that_opens_the_service_is_led_to_the_pages_and_a_program_is_not(http, accept, location):
    answer = http.get("/", headers={"Accept": accept})
    assert answer.headers.get("Location") == location
    assert (answer.status_code, answer.data) == ((302, b"") if location else (200, b"/"))


def test_a_browser_that_sends_something_to_the_root_is_not_led_away(http):
    assert http.post("/", headers=BROWSER).data == b"/"


@pytest.mark.parametrize("path", ["/v1", "/v1/leases", "/openapi.json", "/uis", "/v1/ui/"])
def test_all_other_paths_belong_to_the_application(http, path):
    assert http.get(path, headers=BROWSER).data == path.encode()


@pytest.mark.parametrize("path", ["/ui/", "/ui/index.html", "/ui/leases/5f0c", "/ui/calendar"])
def test_every_page_is_the_same_document_whose_links_are_absolute(http, path):
    answer = http.get(path, headers=BROWSER)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert answer.headers["Cache-Control"] == "no-cache"
    assert answer.data == INDEX.replace(b"./assets", b"/ui/assets")


@pytest.mark.parametrize(
    ("mount", "seen"),
    [
        ("/reservation", "/reservation"),
        ("/a/b/", "/a/b"),
        ("//evil.example", "/evil.example"),
        ('/"><script>', "/%22%3E%3Cscript%3E"),
    ],
)
def test_below_a_prefix_links_and_redirects_have_the_prefix(http, mount, seen):
    below = {"SCRIPT_NAME": mount}
    assert http.get("/", headers=BROWSER, environ_overrides=below).headers["Location"] == f"{seen}/ui/"
    assert http.get("/ui", environ_overrides=below).headers["Location"] == f"{seen}/ui/"
    page = http.get("/ui/deep/page", environ_overrides=below).text
    assert f'src="{seen}/ui/assets/main-3c4d.js"' in page
    assert http.get("/ui/deep/page").text.count('="/ui/') == 2


@pytest.mark.parametrize(
    ("public_url", "root"),
    [("https://cloud.example", "/ui/"), ("https://Cloud.Example:443/reservation/", "/reservation/ui/")],
)
def test_a_public_url_is_the_truth_about_prefix_and_host(folder, public_url, root):
    """A proxy that ends TLS and removes a prefix without telling of either."""
    http = Client(Pages(StandaloneSession(behind), read(folder), public_url=public_url))
    for path in ("/", "/ui"):
        assert http.get(path, headers=BROWSER).headers["Location"] == f"https://cloud.example{root}"
    assert f'src="{root}assets/main-3c4d.js"' in http.get("/ui/leases").text


def test_files_with_a_hash_in_their_name_are_kept_for_ever_and_others_are_not(http):
    for name in ("main-3c4d.js", "main-1a2b.css"):
        assert http.get(f"/ui/assets/{name}").headers["Cache-Control"] == "public, max-age=31536000, immutable"
    for name in ("icon.svg", "manifest.json"):
        assert http.get(f"/ui/{name}").headers["Cache-Control"] == "no-cache"
    assert http.get("/ui/icon.svg").headers["Content-Type"] == "image/svg+xml"


@pytest.mark.parametrize(
    ("accepted", "is_packed"), [("gzip, br", True), ("gzip;q=0", False), ("br", False), ("", False)]
)
def test_a_file_is_sent_compressed_to_those_who_accept_it(http, accepted, is_packed):
    answer = http.get("/ui/assets/main-3c4d.js", headers={"Accept-Encoding": accepted})
    assert answer.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert answer.headers["Vary"] == "Accept-Encoding"
    assert answer.headers.get("Content-Encoding") == ("gzip" if is_packed else None)
    assert (gzip.decompress(answer.data) if is_packed else answer.data) == SCRIPT


def test_an_unchanged_file_is_304_and_each_coding_has_a_tag_of_its_own(http):
    plain = http.get("/ui/assets/main-3c4d.js")
    packed = http.get("/ui/assets/main-3c4d.js", headers={"Accept-Encoding": "gzip"})
    assert plain.headers["ETag"] != packed.headers["ETag"]
    for path, tag in (("/ui/assets/main-3c4d.js", plain.headers["ETag"]), ("/ui/", http.get("/ui/").headers["ETag"])):
        answer = http.get(path, headers={"If-None-Match": tag})
        assert (answer.status_code, answer.data) == (304, b"")
    assert http.get("/ui/", environ_overrides={"SCRIPT_NAME": "/x"}, headers={"If-None-Match": tag}).status_code == 200


@pytest.mark.parametrize(
    "path", ["/ui/nothing.js", "/ui/../pages.py", "/ui/assets/../../files.py", "/ui//etc/passwd.txt", "/ui/%2e%2e/x.py"]
)
def test_a_file_that_was_not_built_is_404(http, path):
    assert http.get(path).status_code == 404


def test_nothing_can_be_sent_to_a_page(http):
    answer = http.post("/ui/")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("path", ["/ui/", "/ui/icon.svg", "/ui/none.js", "/ui", "/ui/session", "/ui/session/none"])
def test_every_answer_forbids_inline_code_other_sites_and_frames(http, path):
    headers = http.get(path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == policy["form-action"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["trusted-types"] == "'none'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cross-Origin-Opener-Policy"] == headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Permissions-Policy"] == "camera=(), microphone=(), geolocation=()"


def test_head_has_the_headers_of_get_and_no_body(http):
    head, get = http.head("/ui/"), http.get("/ui/")
    assert head.data == b""
    assert head.headers["ETag"] == get.headers["ETag"]


def test_without_keystone_a_page_learns_that_it_chooses_who_it_is(http):
    answer = http.get("/ui/session")
    assert (answer.status_code, answer.json) == (200, {"mode": "standalone"})
    assert answer.headers["Cache-Control"] == "no-store"
    for method, path, status in (("POST", "/ui/session", 405), ("PUT", "/ui/session/project", 404)):
        refused = http.open(path, method=method)
        assert refused.status_code == status
        assert refused.json["errors"][0]["status"] == status
