import os
import subprocess
import sys

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
