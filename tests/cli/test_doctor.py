import sys

import numba
import pytest

from learnable.core import kernel_cache


def test_it_says_where_kernels_come_from(learnable, monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    (tmp_path / "learnable").mkdir()
    (tmp_path / "learnable" / "one.kernel").touch()
    code, out, err = learnable("doctor")
    assert code == 0 and err == ""
    assert f"1 kernels compiled here, in {tmp_path / 'learnable'}; it can be written to" in out
    for word in ("processor", "BLAS", "threads", "numba", "Python"):
        assert word in out


def test_it_counts_what_came_with_the_wheel(learnable, monkeypatch, tmp_path):
    (tmp_path / "x86-64-v3").mkdir()
    for name in ("a.kernel", "b.kernel", "note.txt"):
        (tmp_path / "x86-64-v3" / name).touch()
    monkeypatch.setattr(kernel_cache, "levels_here", lambda: ("x86-64-v4", "x86-64-v3"))
    monkeypatch.setattr(kernel_cache, "shipped_folder", tmp_path.joinpath)
    monkeypatch.setattr(kernel_cache, "shipped_versions", kernel_cache.build_versions)
    assert f"2 came compiled for x86-64-v3 and {wheel_versions()}; others" in learnable("doctor")[1]


def wheel_versions():
    return ", ".join(f"{name} {version}" for name, version in kernel_cache.build_versions().items())


@pytest.fixture
def shipped(monkeypatch, tmp_path):
    """Put one kernel where those of the wheel lie, built for these versions."""
    folder = tmp_path / "x86-64-v3"
    folder.mkdir(mode=0o755)
    (folder / "a.kernel").touch()
    monkeypatch.setattr(kernel_cache, "levels_here", lambda: ("x86-64-v3",))
    monkeypatch.setattr(kernel_cache, "shipped_folder", tmp_path.joinpath)
    monkeypatch.setattr(kernel_cache, "shipped_versions", kernel_cache.build_versions)
    return folder


def test_it_says_when_the_wheels_kernels_are_for_another_numba(learnable, monkeypatch, shipped):
    here = kernel_cache.build_versions()
    monkeypatch.setattr(kernel_cache, "shipped_versions", lambda: {**here, "Numba": "0.61.0"})
    assert f"but for Numba 0.61.0, not {numba.__version__}: each is compiled once" in learnable("doctor")[1]


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are access lists there")
def test_it_says_when_others_could_have_changed_them(learnable, shipped):
    shipped.chmod(0o777)
    assert f"others can write to {shipped}: chmod -R go-w" in learnable("doctor")[1]


def test_a_cache_that_cannot_be_written_is_named(learnable, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert "it can NOT be written to" in learnable("doctor")[1]
