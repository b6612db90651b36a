"""Who is refused: foreign hosts, missing keys, other pages, other origins of this machine."""

import pytest
from tests.page.pages import HOST, OURS, enter


def visitor(page, **settings):
    from starlette.testclient import TestClient

    return TestClient(page.app, base_url=HOST, **settings)


@pytest.mark.parametrize("path", ["/", "/api/state", "/static/main.js", "/static/../store.py", "/runs/abc/report"])
def test_without_the_cookie_nothing_is_shown(page, path):
    answered = visitor(page).get(path)
    assert answered.status_code == 403 and "learnable page" in answered.text


def test_the_token_works_once(page):
    first = visitor(page)
    assert first.get(page.start_path).status_code == 200
    assert first.get("/").status_code == 200
    second = visitor(page)
    assert second.get(page.start_path).status_code == 403
    assert second.get("/").status_code == 403
    assert first.get(page.start_path).status_code == 200  # who has the cookie may open the link again


@pytest.mark.parametrize("token", ["", "x", "ü", "A" * 10_000])
def test_a_wrong_token_is_refused_and_leaves_the_right_one_valid(page, token):
    assert visitor(page).get("/start", params={"token": token}).status_code == 403
    assert visitor(page).get(page.start_path).status_code == 200


def test_the_cookie_is_for_no_script_and_no_other_site(page):
    header = visitor(page).get(page.start_path).headers["set-cookie"]
    assert "HttpOnly" in header and "SameSite=Strict" in header and "Domain" not in header
    name = header.partition("=")[0]
    wrong = visitor(page, cookies={name: "guess"})
    assert wrong.get("/api/state").status_code == 403


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "localhost@evil.example", "192.168.0.7:8000", ""],
)
def test_a_foreign_host_is_refused_with_the_right_cookie(client, host):
    answered = client.get("/api/state", headers={"Host": host})
    assert answered.status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000", "localhost:9999", "[::1]:8000", "localhost"])
def test_names_of_this_machine_are_taken(client, host):
    assert client.get("/api/state", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "http://localhost:8888"},  # the same site to a browser, but another program
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"X-Learnable": ""},
    ],
)
def test_what_another_page_posts_is_refused(client, headers):
    answered = client.post("/api/demo", json={"name": "houses"}, headers=headers)
    assert answered.status_code == 403
    assert client.get("/api/state").json()["tables"] == []


def test_a_form_of_another_page_cannot_post(client):
    headers = {"Content-Type": "application/x-www-form-urlencoded", "X-Learnable": ""}
    assert client.post("/api/demo", content="name=houses", headers=headers).status_code == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_page_cannot_read_either(client, site):
    assert client.get("/api/state", headers={"Sec-Fetch-Site": site}).status_code == 403


def test_our_own_page_may_post(client):
    headers = {"Origin": HOST, "Sec-Fetch-Site": "same-origin"}
    assert client.post("/api/demo", json={"name": "houses"}, headers=headers).status_code == 201


def test_every_answer_forbids_what_is_not_ours(client, page):
    for path in ("/", "/api/state", "/static/page.css", "/nothing"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy and "frame-ancestors 'none'" in policy and "trusted-types" in policy
        assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
    refused = visitor(page).get("/")
    assert "default-src 'none'" in refused.headers["content-security-policy"]


def test_there_are_no_scripts_or_styles_in_the_markup(client):
    import re

    text = client.get("/").text
    assert not re.search(r"<script(?![^>]*\bsrc=)", text) and "<style" not in text
    assert not re.search(r"\son\w+=|\sstyle=|https?://", text)


def test_scripts_make_no_markup_of_text(page):
    import re

    for name, content in page.static.items():
        if name.endswith(".js"):
            code = content.decode()
            assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function", code), name
            assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", code), name


def test_web_sockets_are_closed(client):
    from starlette.websockets import WebSocketDisconnect

    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/api/state"):
        pass


def test_two_sessions_do_not_share_a_cookie(tmp_path):
    from learnable.page.app import Page
    from learnable.page.store import Store

    one = Page(Store(tmp_path / "one"))
    other = Page(Store(tmp_path / "other"))
    visitor_of_one = enter(one)
    stolen = dict(visitor_of_one.cookies.items())
    assert visitor(other, cookies=stolen, headers=OURS).get("/api/state").status_code == 403
    visitor_of_one.__exit__(None, None, None)
