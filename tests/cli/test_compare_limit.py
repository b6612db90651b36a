import os
import subprocess
import sys

import pytest

from learnable.cli.compare import hard_limit, muted
from learnable.evaluation.comparison.clock import Clock


def test_a_block_that_does_not_end_is_ended_and_its_files_removed():
    code = (
        "import time\n"
        "from learnable.cli.compare import hard_limit\n"
        "from learnable.evaluation.comparison.clock import Clock\n"
        "from learnable.evaluation.comparison.race import temporary_folder\n"
        "with hard_limit(Clock(0.2)), temporary_folder() as folder:\n"
        "    print(folder, flush=True)\n"
        "    time.sleep(60)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
    assert done.returncode == 1 and "the limit of 0.2 s was over" in done.stderr
    assert not os.path.exists(done.stdout.strip())


def test_a_block_in_time_is_left_alone():
    with hard_limit(Clock(60.0)), hard_limit(Clock(None)):
        pass


def test_processes_that_start_muted_hold_no_stream(capfd):
    with muted():
        subprocess.run([sys.executable, "-c", "print('unheard')"], check=True)
    subprocess.run([sys.executable, "-c", "print('heard')"], check=True)
    assert capfd.readouterr().out == "heard\n"


LATE = """
import sys, time
from learnable.cli.compare import _Ending, hard_limit
from learnable.cli.display import console
from learnable.evaluation import compare
from learnable.evaluation.comparison.clock import Clock
import pyarrow as pa

x = [k / 40 for k in range(40)]
record = dict(compare(pa.table({"x": x, "y": [2 * v + v % 0.1 for v in x]}), "y", models=["LinearRegression"]))
ending = _Ending(quiet=False, details=False, json=False)
with hard_limit(Clock(0.2), ending):
    ending.out, ending.record = console(), record
    if sys.argv[1] == "showing":
        ending.show()
    time.sleep(60)  # as a report does that takes longer to render than the limit allows
"""


@pytest.mark.parametrize("when", ["before", "showing"])
@pytest.mark.sampled(6)
def test_what_was_found_is_shown_once_although_the_limit_is_over_before_the_report_is_written(when):
    done = subprocess.run([sys.executable, "-c", LATE, when], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.count("LinearRegression on 8 rows set aside: R² ") == 1
    assert ("No time was left to write the report" in done.stdout) == (when == "before")
