"""The runs of `make test-machines` are those promised; what a processor cannot run is left out for a reason."""

from tests.machines import PACKAGES, ROOT, busy_cores, machines, processor_flags, why_not

OLD = {"sse4_2"}
NEW = {"sse4_2", "avx2", "fma", "avx512f", "avx512dq", "avx512bw", "avx512vl"}


def test_every_machine_is_there_once():
    names = [machine.name for machine in machines()]
    assert len(names) == len(set(names)) == 7
    promised = {
        "OPENBLAS_CORETYPE": {"Haswell", "Zen", "SkylakeX"},
        "NUMBA_CPU_NAME": {"x86-64-v2", "x86-64-v3", "x86-64-v4"},
    }
    for setting, values in promised.items():
        assert {machine.settings.get(setting) for machine in machines()} - {None} == values
    pairs = {(m.settings["OPENBLAS_CORETYPE"], m.settings["OPENBLAS_NUM_THREADS"]) for m in machines() if m.settings}
    assert pairs == {(core, threads) for core in promised["OPENBLAS_CORETYPE"] for threads in "12"}
    assert sum(machine.is_busy for machine in machines()) == 1


def test_what_cannot_run_is_left_out_with_a_reason():
    run_on_old = [machine.name for machine in machines() if why_not(machine, OLD, "x86_64") is None]
    assert run_on_old == ["every core busy"]
    assert all(why_not(machine, NEW, "x86_64") is None for machine in machines())
    assert all("arm64" in why_not(machine, set(), "arm64") for machine in machines() if machine.needs)


def test_the_packages_exist():
    assert all(list((ROOT / "tests" / package).rglob("test_*.py")) for package in PACKAGES)
    assert isinstance(processor_flags(), set)


def test_busy_loops_end():
    with busy_cores(True):
        pass
    with busy_cores(False):
        pass
