import os

import pytest

from learnable.core.model_file import writing


def test_an_error_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), writing(path) as file:
        file.write(b"%d" % (1 // 0))
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["file"]


def test_the_old_file_is_there_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with writing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new" and os.listdir(tmp_path) == ["file"]


def test_permissions_and_links_stay(tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    with writing(link) as file:
        file.write(b"new")
    assert link.is_symlink() and path.read_bytes() == b"new" and path.stat().st_mode & 0o777 == 0o640


def test_what_is_no_file_is_never_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(FileExistsError, match="exists and is not a file"), writing(pipe):
        pytest.fail("the block must not run")
    assert pipe.is_fifo() and os.listdir(tmp_path) == ["pipe"]


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError), writing(tmp_path / "none" / "file"):
        pytest.fail("the block must not run")
