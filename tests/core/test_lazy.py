import importlib
import pkgutil
import subprocess
import sys

import pytest

import learnable

pytestmark = pytest.mark.sampled(1)  # every case is a promise of its own


def packages():
    yield learnable
    for info in pkgutil.walk_packages(learnable.__path__, "learnable."):
        if info.ispkg:
            yield importlib.import_module(info.name)


@pytest.mark.parametrize(
    "package", [package for package in packages() if hasattr(package, "__all__")], ids=lambda p: p.__name__
)
def test_every_name_of_a_package_loads(package):
    assert dir(package) == sorted(package.__all__)
    for name in package.__all__:
        assert getattr(package, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'learnable' has no attribute 'Rigde'"):
        _ = learnable.Rigde


def test_importing_loads_none_of_the_heavy_libraries():
    heavy = "('numba', 'sklearn', 'scipy', 'pandas', 'torch', 'matplotlib')"
    code = f"import sys, learnable; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("first", ["import learnable.solvers.em", "import learnable"])
def test_a_name_wins_over_the_module_of_the_same_name(first):
    code = f"{first}; import learnable; print(learnable.solvers.em.__class__.__name__, learnable.solvers.em.__name__)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "function em\n"
