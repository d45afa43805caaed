"""`make repeat`: each run has fixtures of its own, failures are printed, orders follow from the seed."""

import os
import sys

import pytest
from tests.processes import ends, environment, run, runs

from tools import repeat

TESTS = """
import pathlib, pytest
log = pathlib.Path(__file__).with_name("log")

def note(word):
    with log.open("a") as file:
        print(word, file=file)

@pytest.fixture
def part():
    note("begin")
    yield
    note("end")

@pytest.mark.parametrize("k", range(4))
def test_a(part, k):
    note(f"a{k}")
    assert log.read_text().count("a2") != 2, "the second time"
"""


@pytest.fixture
def case(tmp_path):
    path = tmp_path / "test_case.py"
    path.write_text(TESTS)
    return path


def names(case):
    return [line for line in case.with_name("log").read_text().split() if line not in ("begin", "end")]


@pytest.mark.slow
def test_a_failure_now_and_then_is_found_and_printed(case, capfd):
    """The fixtures begin and end for each run, in one process or in several."""
    assert repeat.main(["-n", "3", "--each", "2", "--busy", "1", f"{case}::test_a[2]"]) == 1
    printed = capfd.readouterr().out
    assert printed.count("E       AssertionError: the second time") == 1
    assert "2 of 3 times: 1 failed, 1 passed\n" in printed
    assert printed.endswith("3 of 3 times: 1 failed, 2 passed\n")
    assert case.with_name("log").read_text().split() == 3 * ["begin", "a2", "end"]


@pytest.mark.slow
def test_orders_are_random_and_can_be_repeated(case, capfd):
    orders = []
    for seed in ([], ["--shuffle", "--seed", "5"], ["--shuffle", "--seed", "5"], ["--shuffle", "--seed", "6"]):
        repeat.main(["-n", "2", "--busy", "0", *seed, str(case)])
        orders.append(names(case))
        case.with_name("log").unlink()
    plain, one, again, other = orders
    assert plain == 2 * ["a0", "a1", "a2", "a3"]
    assert one == again
    assert len({tuple(order) for order in (plain, one, other)}) == 3
    assert sorted(one) == sorted(plain)
    repeat.main(["-n", "1", "--busy", "0", "--shuffle", str(case)])
    assert "orders with seed" in capfd.readouterr().out


def test_a_test_that_is_not_there_or_kills_its_process_is_a_failure(case, capfd):
    assert repeat.main(["-n", "2", "--busy", "0", f"{case}::test_b"]) == 1
    case.write_text("import os\ndef test_a(): os._exit(0)\n")
    assert repeat.main(["-n", "2", "--busy", "0", str(case)]) == 1
    assert "2 died" not in capfd.readouterr().out  # the first one ends it


def test_busy_processes_share_one_core_and_end():
    before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    with repeat.loaded(2, min(before or {0})) as busy:
        assert all(runs(pid) for pid in busy)
        if before is not None:
            assert all(os.sched_getaffinity(pid) == {min(before)} for pid in (0, *busy))
    assert not any(runs(pid) for pid in busy)
    assert before is None or os.sched_getaffinity(0) == before


def test_busy_processes_end_with_the_one_that_started_them():
    script = """
import os
from tools import repeat
with repeat.loaded(1, None) as busy:
    print(*busy, flush=True)
    os._exit(0)
"""
    done = run([sys.executable, "-c", script], cwd=repeat.ROOT, env=environment(), check=True)
    assert ends(int(done.stdout))
