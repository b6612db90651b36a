import numba

from learnable.core import kernel_cache


def test_it_says_where_kernels_come_from(learnable, monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    (tmp_path / "learnable").mkdir()
    (tmp_path / "learnable" / "one.kernel").touch()
    code, out, err = learnable("doctor")
    assert code == 0 and err == ""
    assert f"1 kernels in {tmp_path / 'learnable'}; it can be written to" in out
    for word in ("processor", "BLAS", "threads", "numba", "Python"):
        assert word in out


def test_it_counts_what_came_with_the_wheel(learnable, monkeypatch, tmp_path):
    (tmp_path / "x86-64-v3").mkdir()
    for name in ("a.kernel", "b.kernel", "note.txt"):
        (tmp_path / "x86-64-v3" / name).touch()
    monkeypatch.setattr(kernel_cache, "levels_here", lambda: ("x86-64-v4", "x86-64-v3"))
    monkeypatch.setattr(kernel_cache, "shipped_folder", tmp_path.joinpath)
    assert "2 came compiled for x86-64-v3" in learnable("doctor")[1]


def test_a_cache_that_cannot_be_written_is_named(learnable, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert "it can NOT be written to" in learnable("doctor")[1]
