"""The cache of compiled kernels: what is loaded is what would be compiled, whatever lies in the folders."""

import multiprocessing
import os
import shutil
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest

import learnable
from learnable.core import kernel_cache, simd
from learnable.core.jit import kernel, lean_kernel, strict_kernel
from learnable.core.kernel_cache import LEVELS, KernelCache, content, levels_here

PARTS = """
from learnable.core.jit import kernel
RATE = 2.0
STEPS = (1, 2)
@kernel
def inner(x):
    return RATE * x + STEPS[1]
"""
MAIN = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from learnable.core.jit import kernel
import parts
from parts import inner
@kernel
def outer(x):
    return inner(x) + 1.0
value = outer(3.0)
from learnable.core.kernel_cache import origins
print(value, dict(origins))
"""


def write_modules(folder, main=MAIN, parts=PARTS):
    """Write two modules into a folder; return where."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    (work / "parts.py").write_text(textwrap.dedent(parts))
    (work / "main.py").write_text(textwrap.dedent(main))
    return work


def run(folder, main=MAIN, parts=PARTS, **environment):
    """Run two modules in a fresh process; return what it printed."""
    work = write_modules(folder, main, parts)
    bare = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # bytecode has time stamps, and two runs may share a second
    variables = {**bare, "NUMBA_CACHE_DIR": str(folder / "cache"), **environment}
    command = [sys.executable, str(work / "main.py"), str(work)]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory):
    """A folder whose cache holds the kernel of the two modules."""
    folder = tmp_path_factory.mktemp("once")
    assert run(folder) == "9.0 {'compiled': 1}"
    return folder


@pytest.fixture
def compiled(tmp_path, compiled_once):
    """A copy of that folder: names of files tell what is in them, not where they are."""
    return Path(shutil.copytree(compiled_once, tmp_path, dirs_exist_ok=True))


def test_a_second_process_loads_what_the_first_compiled(compiled):
    assert run(compiled) == "9.0 {'cached': 1}"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        ("RATE = 2.0", "RATE = 3.0", "12.0"),
        ("STEPS = (1, 2)", "STEPS = (1, 3)", "10.0"),
        ("RATE * x +", "RATE * x -", "5.0"),
        ("@kernel", "OTHER = 1\n@kernel", "9.0"),
    ],
)
def test_a_change_in_another_module_is_seen(compiled, old, new, value):
    found = run(compiled, parts=PARTS.replace(old, new))
    same_meaning = value == "9.0"
    assert found == (f"{value} {{'cached': 1}}" if same_meaning else f"{value} {{'compiled': 1}}")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "environment",
    [{"NUMBA_BOUNDSCHECK": "1"}, {"NUMBA_OPT": "1"}, {"NUMBA_CPU_NAME": "x86-64-v2", "NUMBA_CPU_FEATURES": ""}],
)
def test_other_settings_mean_compiling(compiled, environment):
    assert run(compiled, **environment) == "9.0 {'compiled': 1}"


@pytest.mark.threaded
def test_the_number_of_threads_does_not(compiled):
    assert run(compiled, NUMBA_NUM_THREADS="1") == "9.0 {'cached': 1}"


def cache_of(function):
    return function.dispatcher._cache


@kernel
def plus_one(x):
    return x + 1


def name_of(function, *, processor="x86_64 any "):
    cache_of(function)._content = None
    assert cache_of(function)._is_known()
    return cache_of(function)._file_name((numba.float64,), processor)


def test_the_name_of_a_file_tells_everything_the_code_depends_on(monkeypatch):
    names = {name_of(plus_one)}
    names.add(name_of(plus_one, processor="x86_64 other "))
    monkeypatch.setattr(kernel_cache.numba, "__version__", "0.0.1")
    kernel_cache._environment.cache_clear()
    names.add(name_of(plus_one))
    monkeypatch.undo()
    monkeypatch.setattr(kernel_cache.llvmlite, "__version__", "0.0.1")
    kernel_cache._environment.cache_clear()
    names.add(name_of(plus_one))
    monkeypatch.undo()
    monkeypatch.setattr(kernel_cache, "_intrinsics_source", lambda module: "other")
    names.add(name_of(plus_one))  # uses no intrinsic: the first name again
    kernel_cache._environment.cache_clear()
    names.add(name_of(plus_one))
    assert len(names) == 4


def test_options_and_argument_types_belong_to_the_name():
    def half(x):
        return x / 2

    variants = [decorate(half) for decorate in (kernel, lean_kernel, strict_kernel)]
    assert len({content(one.py_func, one.options) for one in variants}) == 3
    kinds = [numba.float64, numba.float32, numba.float64[::1], numba.float64[:], numba.float64[:, ::1]]
    assert cache_of(variants[0])._is_known()
    names = {cache_of(variants[0])._file_name((kind,), "any") for kind in kinds}
    assert len(names) == len(kinds)


def test_every_kernel_of_the_library_has_a_digest():
    from learnable.core.jit import Kernel

    kernels = [value for module in every_module() for value in vars(module).values() if isinstance(value, Kernel)]
    assert len(kernels) > 300
    digests = {content(one.py_func, one.options) for one in kernels}
    assert len(digests) > 300


def every_module():
    import importlib
    import pkgutil

    for info in pkgutil.walk_packages(learnable.__path__, "learnable."):
        if not info.name.endswith("__main__"):
            yield importlib.import_module(info.name)


@pytest.fixture(scope="module")
def shipped_once(tmp_path_factory):
    """The kernel of the two modules compiled for a level into a folder that stands for the wheel's."""
    level = levels_here()[0]
    work = tmp_path_factory.mktemp("shipped")
    run(work, NUMBA_CPU_NAME=level, NUMBA_CPU_FEATURES="")
    (work / "compiled" / level).mkdir(parents=True)
    for file in (work / "cache" / "learnable").iterdir():
        shutil.move(file, work / "compiled" / level / file.name)
    return work / "compiled"


@pytest.fixture
def shipped(tmp_path, shipped_once):
    """A copy of that folder, which a test may damage."""
    return Path(shutil.copytree(shipped_once, tmp_path / "compiled"))


SHIPPED = MAIN.replace(
    "import parts",
    "from pathlib import Path\nfrom learnable.core import kernel_cache\n"
    "kernel_cache.shipped_folder = lambda level: Path(sys.argv[1]).parent / 'compiled' / level\nimport parts",
)


@pytest.mark.skipif(not levels_here(), reason="this processor has none of the shipped levels")
class TestShippedKernels:
    def test_they_are_loaded_by_a_process_without_any_setting(self, tmp_path, shipped):
        assert run(tmp_path, SHIPPED) == "9.0 {'shipped': 1}"

    def test_another_source_is_compiled(self, tmp_path, shipped):
        assert run(tmp_path, SHIPPED, PARTS.replace("2.0", "3.0")) == "12.0 {'compiled': 1}"

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize(
        ("old", "new", "value"),
        [("STEPS = (1, 2)", "STEPS = (1, 4)", "11.0"), ("RATE * x +", "RATE * x -", "5.0")],
    )
    def test_a_changed_constant_or_body_in_another_module_is_compiled(self, tmp_path, shipped, old, new, value):
        assert run(tmp_path, SHIPPED, PARTS.replace(old, new)) == f"{value} {{'compiled': 1}}"

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("library", ["numba", "llvmlite"])
    def test_what_was_built_with_another_version_is_compiled(self, tmp_path, shipped, library):
        main = SHIPPED.replace("import parts\n", f"kernel_cache.{library}.__version__ = '0.1'\nimport parts\n", 1)
        assert run(tmp_path, main) == "9.0 {'compiled': 1}"

    @pytest.mark.skipif(len(levels_here()) < 2, reason="this processor has one level only")
    def test_code_of_one_level_in_the_folder_of_another_is_not_loaded(self, tmp_path, shipped):
        best, other = levels_here()[:2]
        (shipped / best).rename(shipped / other)
        assert run(tmp_path, SHIPPED) == "9.0 {'compiled': 1}"

    def test_loading_does_not_import_what_only_compiling_needs(self, tmp_path, shipped):
        main = SHIPPED + "print('numba.np.arraymath' in sys.modules)\n"
        assert run(tmp_path, main) == "9.0 {'shipped': 1}\nFalse"
        assert run(tmp_path, main, PARTS.replace("2.0", "3.0")) == "12.0 {'compiled': 1}\nTrue"

    def test_a_level_that_the_processor_lacks_is_not_looked_at(self, tmp_path, shipped):
        main = SHIPPED.replace("import parts\n", "kernel_cache.levels_here = lambda: ()\nimport parts\n", 1)
        assert run(tmp_path, main) == "9.0 {'compiled': 1}"

    def test_a_damaged_file_is_compiled(self, tmp_path, shipped):
        for file in shipped.glob("*/*"):
            raw = bytearray(file.read_bytes())
            raw[len(raw) // 2] ^= 1
            file.write_bytes(bytes(raw))
        assert run(tmp_path, SHIPPED) == "9.0 {'compiled': 1}"

    @pytest.mark.skipif(sys.platform == "win32", reason="permissions are access lists there")
    @pytest.mark.parametrize("what", ["folder", "file"])
    def test_what_others_can_write_to_is_not_read(self, tmp_path, shipped, what):
        for path in shipped.glob("*" if what == "folder" else "*/*"):
            path.chmod(path.stat().st_mode | 0o002)
        assert run(tmp_path, SHIPPED) == "9.0 {'compiled': 1}"


def test_the_best_level_comes_first():
    assert list(LEVELS) == ["x86-64-v4", "x86-64-v3"]
    assert LEVELS["x86-64-v3"] < LEVELS["x86-64-v4"]


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert run(tmp_path) == "9.0 {'compiled': 1}"


def test_a_full_disk_is_no_error_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)

    @kernel
    def triple(x):
        return 3 * x

    assert triple(14) == 42
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no folder that nobody can write to")
def test_a_home_that_cannot_be_written_to_is_no_error(tmp_path):
    nowhere = {"NUMBA_CACHE_DIR": "", "HOME": "/proc/self", "XDG_CACHE_HOME": "/proc/self"}
    assert run(tmp_path, **nowhere) == "9.0 {'compiled': 1}"


@pytest.mark.skipif(sys.platform == "win32", reason="there are no limits of a file's size")
def test_a_disk_that_fills_up_while_a_file_is_written_leaves_nothing(tmp_path):
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
    assert run(tmp_path, limit + MAIN) == "9.0 {'compiled': 1}"
    assert list((tmp_path / "cache" / "learnable").iterdir()) == []
    assert run(tmp_path) == "9.0 {'compiled': 1}"


@pytest.mark.threaded
def test_two_processes_may_compile_at_once(tmp_path):
    write_modules(tmp_path)
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, str(tmp_path / "work" / "main.py"), str(tmp_path / "work")]
    both = [subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert all(one.communicate()[0].startswith("9.0 ") and one.returncode == 0 for one in both)
    assert run(tmp_path) == "9.0 {'cached': 1}"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_can_compile():
    context = multiprocessing.get_context("fork")
    with context.Pool(1) as pool:
        assert pool.apply(plus_one, (np.float32(1),)) == 2


SCAN = """
import sys
import numpy as np
import learnable
from learnable.data.blocks import scan_dense
one = np.ones(1, dtype=np.uint64)
value = scan_dense(np.ones((2, 1), dtype=np.uint64), one, np.ones(2, dtype=np.uint64))
from learnable.core.kernel_cache import origins
print(value[1], learnable.__file__.startswith(sys.argv[1]), dict(origins))
"""


@pytest.mark.skipif(not levels_here(), reason="this processor has none of the shipped levels")
def test_kernels_are_loaded_from_a_zip_file(tmp_path):
    level = levels_here()[0]
    root = Path(learnable.__file__).parent
    archive = tmp_path / "site.zip"
    build = {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(tmp_path / "build")}
    subprocess.run([sys.executable, "-c", SCAN, str(root)], env={**os.environ, **build}, check=True)
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(root.rglob("*")):
            if path.suffix in (".py", ".pyi") or path.name == "py.typed":
                file.write(path, Path("learnable") / path.relative_to(root))
        for path in (tmp_path / "build" / "learnable").iterdir():
            file.write(path, Path("learnable", "compiled", level, path.name))
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(archive)}
    command = [sys.executable, "-c", SCAN, str(archive)]
    found = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "0 True {'shipped': 1}"


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are access lists there")
@pytest.mark.parametrize(
    ("owner", "members", "primary", "shared", "private"),
    [
        ("ada", [], True, False, True),
        ("ada", ["ada"], True, False, True),
        ("ada", ["ada", "bob"], True, False, False),
        ("staff", [], True, False, False),
        ("ada", [], False, False, False),
        ("ada", [], True, True, False),
    ],
)
def test_a_group_may_write_if_it_is_the_users_own(tmp_path, monkeypatch, owner, members, primary, shared, private):
    import grp
    import pwd

    folder = tmp_path / "x"
    folder.mkdir()
    folder.chmod(0o775)
    number = folder.stat().st_gid
    user = SimpleNamespace(pw_name="ada", pw_uid=5, pw_gid=number if primary else number + 1)
    other = SimpleNamespace(pw_name="bob", pw_uid=6, pw_gid=number)
    monkeypatch.setattr(pwd, "getpwuid", lambda _: user)
    monkeypatch.setattr(pwd, "getpwall", lambda: [user, other] if shared else [user])
    monkeypatch.setattr(grp, "getgrgid", lambda _: SimpleNamespace(gr_name=owner, gr_mem=members))
    kernel_cache._is_private_group.cache_clear()
    assert kernel_cache.is_safe(folder) is private
    kernel_cache._is_private_group.cache_clear()


def test_a_constant_of_a_module_belongs_to_the_digest(monkeypatch):
    def uses_module(x):
        return x * simd.WIDTH

    before = content(uses_module, {})
    monkeypatch.setattr(simd, "WIDTH", 8)
    assert content(uses_module, {}) != before


def test_a_kernel_that_uses_something_unknown_is_compiled_each_time():
    class Thing:
        pass

    thing = Thing()

    def uses_thing(x):
        return thing

    cache = KernelCache(uses_thing, {})
    assert not cache._is_known()


def test_the_cache_is_numbas_own_kind():
    assert isinstance(cache_of(plus_one), KernelCache)
