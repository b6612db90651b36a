"""Tables come in whole or not at all, under names that are no paths."""

import errno
import os
import stat

import pytest
from tests.page.pages import DeskHere, enter, upload

from learnable.page.app import Page
from learnable.page.store import Limits, RefusedError, Store, check_name, plain_name


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_the_folder_is_private_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        store = Store(tmp_path / "session")
    finally:
        os.umask(before)
    for part in (store.folder, store.folder / "tables", store.folder / "runs"):
        assert stat.S_IMODE(part.stat().st_mode) == 0o700


def test_a_temporary_folder_goes_at_the_end():
    with Store() as store:
        assert store.folder.is_dir()
    assert not store.folder.exists()


@pytest.mark.parametrize(
    "name",
    ["../../../etc/passwd.csv", "..\\..\\boot.csv", "/etc/cron.d/x.csv", "a/../../b.csv", "C:\\x.csv", "..csv.csv"],
)
def test_a_path_in_a_name_leads_nowhere(client, page, name, tmp_path):
    number = upload(client, b"a,b\n1,2\n", name)
    assert page.store.tables[number].name == name.replace("\\", "/").rpartition("/")[2]
    assert files_in(tmp_path) == [f"session/tables/{number}/{part}" for part in ("about.json", "table.csv")]


@pytest.mark.parametrize("name", ["m.pkl", "m.pickle", "m.joblib", "a.npy", "a.PKL.gz", "x.pt", "run.py"])
def test_what_may_run_code_is_refused(client, name):
    answered = client.post("/api/tables", params={"name": name}, content=b"cos\nsystem\n")
    assert answered.status_code == 415 and "code" in answered.json()["error"]


@pytest.mark.parametrize("name", ["", ".csv", "table", "table.exe2", "a.html", "x.svg", "\0.csv\0"])
def test_what_is_no_table_is_refused(client, name):
    assert client.post("/api/tables", params={"name": name}, content=b"a\n1\n").status_code == 415


def test_an_upload_that_is_too_large_is_refused_and_leaves_nothing(tmp_path):
    page = Page(Store(tmp_path / "session", Limits(upload=1000)), DeskHere())
    client = enter(page)
    told = client.post("/api/tables", params={"name": "a.csv"}, content=b"x" * 1001)
    assert told.status_code == 413 and "command line" in told.json()["error"]

    def pieces():  # without a length that could be told from the header
        for _ in range(11):
            yield b"x" * 100

    told = client.post("/api/tables", params={"name": "a.csv"}, content=pieces())
    assert told.status_code == 413
    assert files_in(tmp_path) == [] and client.get("/api/state").json()["tables"] == []
    client.__exit__(None, None, None)


def test_a_full_disk_is_told_and_what_was_there_stays(client, page, monkeypatch):
    kept = upload(client, b"a,b\n1,2\n")
    real = os.open

    def full(path, flags, *more, **named):
        if "table.csv" in str(path) and flags & os.O_CREAT:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", full)
    told = client.post("/api/tables", params={"name": "b.csv"}, content=b"a,b\n1,2\n")
    monkeypatch.undo()
    assert told.status_code == 507 and "full" in told.json()["error"]
    assert [table["id"] for table in client.get("/api/state").json()["tables"]] == [kept]
    assert client.get(f"/api/tables/{kept}").json()["rows"] == 1


def test_a_disk_with_too_little_room_is_told_before_anything_is_sent(client, monkeypatch):
    import shutil
    from types import SimpleNamespace

    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=10**6))
    told = client.post("/api/tables", params={"name": "b.csv"}, content=b"x" * 2_000_000)
    assert told.status_code == 507 and "disk" in told.json()["error"]


def test_an_empty_file_is_refused(client):
    assert client.post("/api/tables", params={"name": "b.csv"}, content=b"").status_code == 400


@pytest.mark.parametrize("number", ["../../etc", "0" * 12, "a", "%2e%2e", "x" * 12])
def test_an_unknown_id_is_not_looked_for_on_the_disk(client, page, number):
    with pytest.raises(RefusedError):
        page.store.table(number)
    assert client.get(f"/api/tables/{number}").status_code in (403, 404)


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    from pathlib import Path

    from learnable.page.store import read_json, write_json

    write_json(tmp_path / "a.json", {"old": 1})

    def full(self, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(RefusedError, match="full"):
        write_json(tmp_path / "a.json", {"new": 2})
    monkeypatch.undo()
    assert read_json(tmp_path / "a.json") == {"old": 1} and files_in(tmp_path) == ["a.json"]


def test_the_server_loads_no_models():
    """The link is printed soon: what fits and reads runs in other processes."""
    import subprocess
    import sys

    code = "import sys, learnable.page.serve; print([m for m in ('sklearn', 'scipy', 'numba') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert found.stdout.strip() == "[]"


def test_a_session_is_found_again(tmp_path):
    store = Store(tmp_path / "session")
    table = store.add_demo("demo:houses")
    assert Store(tmp_path / "session").table(table.id) == table
    (store.folder_of(table) / "about.json").write_text("{ half of it", encoding="utf-8")
    assert Store(tmp_path / "session").tables == {}


def test_names_for_headers_hold_nothing_that_ends_a_line():
    assert plain_name('a"\r\nSet-Cookie: x=1.csv') == "a___Set-Cookie__x=1.csv"
    assert check_name("😀.csv") == ("😀.csv", ".csv") and plain_name("😀") == "_"


def test_a_file_of_the_command_line_is_read_where_it_is(tmp_path):
    (tmp_path / "t.csv").write_text("a\n1\n", encoding="utf-8")
    store = Store(tmp_path / "session")
    table = store.add_file(str(tmp_path / "t.csv"))
    assert table.path == str(tmp_path / "t.csv") and "path" not in table.public()
    assert files_in(tmp_path / "session") == [f"tables/{table.id}/about.json"]
