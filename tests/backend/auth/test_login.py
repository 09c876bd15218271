"""Who gets in: the token's file, login links, sessions, and what other sites may cause."""

import io
import logging
import stat
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlmodel import select
from trellis_api.auth import login_link
from trellis_api.auth.admin_token import ensure_admin_token
from trellis_api.auth.models import AccessToken, BrowserSession, LoginCode, LoginFailure
from trellis_api.auth.rate_limit import MAX_FAILURES, WINDOW, add_failure, find_wait_s
from trellis_api.auth.secrets import LOGIN_CODE_PREFIX, new_secret
from trellis_api.auth.service import create_login_code
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.redaction import RedactingFilter, install_log_redaction
from trellis_api.core.settings import Settings
from trellis_api.main import create_app
from uvicorn.logging import AccessFormatter

OWN_PAGE = {"X-Trellis-Client": "web"}


@pytest.fixture
def code(database: Database) -> str:
    with database.write() as session:
        return create_login_code(session, lifetime_s=60)


def test_the_first_start_writes_a_token_for_its_owner_alone(
    anonymous: TestClient, settings: Settings
) -> None:
    path = settings.admin_token_path

    token = path.read_text().strip()

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(token) > 40
    headers = {"Authorization": f"Bearer {token}"}
    assert anonymous.get("/api/v1/auth/me", headers=headers).json()["name"] == "admin"


def test_a_second_start_keeps_the_token_and_tightens_its_file(database: Database, settings: Settings) -> None:
    first = ensure_admin_token(database, path=settings.admin_token_path)
    settings.admin_token_path.chmod(0o644)

    second = ensure_admin_token(database, path=settings.admin_token_path)

    assert first == second
    assert stat.S_IMODE(settings.admin_token_path.stat().st_mode) == 0o600


def test_a_replaced_token_file_voids_the_old_token(
    client: TestClient, database: Database, settings: Settings
) -> None:
    settings.admin_token_path.unlink()

    new = ensure_admin_token(database, path=settings.admin_token_path)

    assert client.get("/api/v1/auth/me").status_code == 401
    assert client.get("/api/v1/auth/me", headers={"Authorization": f"Bearer {new}"}).status_code == 200


def test_the_database_holds_hashes_only(
    client: TestClient, database: Database, admin_token: str, code: str, anonymous: TestClient
) -> None:
    anonymous.post("/api/v1/auth/login", json={"token": admin_token})
    cookie = anonymous.cookies["trellis_session"]

    with database.read() as session:
        rows = [*session.exec(select(AccessToken)), *session.exec(select(LoginCode))]
        rows += [*session.exec(select(BrowserSession))]

    assert len(rows) >= 3
    for secret in (admin_token, code, cookie):
        assert secret not in str(rows)


def test_every_endpoint_asks_for_a_login(anonymous: TestClient) -> None:
    open_to_all = {"/api/v1/auth/login", "/api/v1/auth/logout", "/healthz", "/readyz", "/metrics"}
    schema = anonymous.app.openapi()  # type: ignore[attr-defined]
    checked = 0

    for path, methods in schema["paths"].items():
        if path in open_to_all:
            continue
        address = path.replace("{job_id}", "job_aaaaaaaaaaaa").replace("{", "").replace("}", "")
        for method in methods:
            response = anonymous.request(method, address, json={"attempt": 1, "step": 1})
            assert response.status_code == 401, (method, path)
            checked += 1

    assert checked > 20


def test_a_login_link_opens_one_session(anonymous: TestClient, code: str) -> None:
    first = anonymous.post("/api/v1/auth/login", json={"code": code})
    me = anonymous.get("/api/v1/auth/me")
    anonymous.cookies.clear()
    second = anonymous.post("/api/v1/auth/login", json={"code": code})

    cookie = first.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert me.json()["method"] == "session"
    assert second.status_code == 401
    assert second.json()["error"] == "login_failed"


def test_a_login_link_expires(anonymous: TestClient, database: Database) -> None:
    with database.write() as session:
        code = create_login_code(session, lifetime_s=0)

    response = anonymous.post("/api/v1/auth/login", json={"code": code})

    assert response.status_code == 401


def test_the_command_prints_a_link_that_works(
    anonymous: TestClient, database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login_link, "Database", lambda _settings: database)
    monkeypatch.setattr(database, "dispose", lambda: None)

    link = login_link.create_login_link(settings)

    base, code = link.split("/login?code=")
    assert base == "http://127.0.0.1:8001"
    assert anonymous.post("/api/v1/auth/login", json={"code": code}).status_code == 200


def test_a_cookie_alone_changes_nothing(anonymous: TestClient, code: str) -> None:
    anonymous.post("/api/v1/auth/login", json={"code": code})

    without = anonymous.delete("/api/v1/jobs/job_aaaaaaaaaaaa")
    foreign = anonymous.delete(
        "/api/v1/jobs/job_aaaaaaaaaaaa", headers={**OWN_PAGE, "Sec-Fetch-Site": "cross-site"}
    )
    own = anonymous.delete("/api/v1/jobs/job_aaaaaaaaaaaa", headers=OWN_PAGE)

    assert (without.status_code, without.json()["error"]) == (403, "cross_site_request")
    assert foreign.status_code == 403
    assert own.status_code == 404


def test_logout_ends_the_session_on_the_server(anonymous: TestClient, code: str) -> None:
    anonymous.post("/api/v1/auth/login", json={"code": code})
    cookie = anonymous.cookies["trellis_session"]

    response = anonymous.post("/api/v1/auth/logout", headers=OWN_PAGE)
    anonymous.cookies.set("trellis_session", cookie)

    assert response.status_code == 204
    assert anonymous.get("/api/v1/auth/me").status_code == 401


def test_guessing_is_slowed_down(anonymous: TestClient, admin_token: str) -> None:
    for _ in range(MAX_FAILURES):
        assert anonymous.post("/api/v1/auth/login", json={"token": "guess"}).status_code == 401

    response = anonymous.post("/api/v1/auth/login", json={"token": admin_token})

    assert response.status_code == 429
    assert int(response.headers["retry-after"]) > 0


def test_the_limit_holds_in_every_process_of_the_api(
    anonymous: TestClient, admin_token: str, database: Database, settings: Settings
) -> None:
    for _ in range(MAX_FAILURES):
        anonymous.post("/api/v1/auth/login", json={"token": "guess"})

    other = TestClient(create_app(settings, database))
    response = other.post("/api/v1/auth/login", json={"token": admin_token})

    assert (response.status_code, response.json()["error"]) == (429, "too_many_attempts")


def test_the_limit_of_attempts_ends(database: Database) -> None:
    now = utc_now()
    with database.write() as session:
        for _ in range(MAX_FAILURES):
            add_failure(session, address="10.0.0.1", now=now)

        assert find_wait_s(session, address="10.0.0.1", now=now) == WINDOW.total_seconds()
        assert find_wait_s(session, address="10.0.0.2", now=now) == 0
        assert find_wait_s(session, address="10.0.0.1", now=now + WINDOW) == 0


def test_failures_are_forgotten_when_they_slow_nobody_down_any_more(database: Database) -> None:
    now = utc_now()
    with database.write() as session:
        for seconds in (0, 1, 120):
            add_failure(session, address=f"10.0.0.{seconds}", now=now + timedelta(seconds=seconds))

        assert len(session.exec(select(LoginFailure)).all()) == 1


def test_secrets_never_reach_the_logs(
    anonymous: TestClient,
    admin_token: str,
    code: str,
    caplog: pytest.LogCaptureFixture,
    make_launched: Callable[..., Any],
) -> None:
    caplog.set_level(logging.DEBUG)
    install_log_redaction()
    caplog.handler.addFilter(RedactingFilter())
    launched = make_launched()
    anonymous.post("/api/v1/auth/login", json={"token": admin_token})
    anonymous.post("/api/v1/auth/login", json={"code": "trellis_login_wrongwrongwrongwrong"})
    anonymous.get(f"/login?code={code}")
    anonymous.get("/api/v1/jobs", headers={"Authorization": f"Bearer {launched.token}"})
    logging.getLogger("uvicorn.access").info('"GET /login?code=%s HTTP/1.1" 200', code)

    assert "HTTP/1.1" in caplog.text
    for secret in (admin_token, code, launched.token):
        assert secret not in caplog.text


def test_the_access_log_keeps_its_form_without_the_code() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        AccessFormatter('%(client_addr)s "%(request_line)s" %(status_code)s', use_colors=False)
    )
    handler.addFilter(RedactingFilter())
    code = new_secret(LOGIN_CODE_PREFIX)
    arguments = ("127.0.0.1:5", "GET", f"/login?code={code}", "1.1", 200)

    handler.handle(logging.LogRecord("x", logging.INFO, "x", 1, '%s - "%s %s HTTP/%s" %d', arguments, None))

    assert stream.getvalue() == '127.0.0.1:5 "GET /login?code=[secret] HTTP/1.1" 200 OK\n'


def test_a_traceback_is_logged_without_the_password_that_its_error_quotes() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(RedactingFilter())
    try:
        raise ConnectionError("cannot reach postgresql://trellis:hunter2@db/trellis")
    except ConnectionError as error:
        record = logging.LogRecord("x", logging.ERROR, "x", 1, "broken", (), (type(error), error, None))

    handler.handle(record)

    assert "ConnectionError: cannot reach postgresql://[secret]@db/trellis" in stream.getvalue()


@pytest.mark.parametrize("body", [{}, {"code": "a", "token": "hunter2"}, {"password": "hunter2"}])
def test_a_login_needs_exactly_one_proof(anonymous: TestClient, body: dict[str, str]) -> None:
    response = anonymous.post("/api/v1/auth/login", json=body)

    assert response.status_code == 422
    assert "hunter2" not in response.text
