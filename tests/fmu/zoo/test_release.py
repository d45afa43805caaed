"""What is freed is freed once and not touched again; reset is never called; instances do not pile up."""

import gc
import os
import sys

import pytest
from tests import processes
from tests.fmu.zoo.members import animal
from tests.fmu.zoo.pairs import pair, part

import cosolve as cs

RUN = """
import gc, sys
import cosolve as cs
part = cs.load_fmu({file!r})
system = cs.System({{"a": part}})
system.set("a.u", 1.0)
for method in (cs.SemiImplicit(1), cs.Implicit(1), cs.Jacobi(0)):
    for _ in range(2):
        cs.simulate(system, t_end=1.0, method=method, step=0.1)
stepper = cs.Stepper(system, method=cs.SemiImplicit(1), step=0.1, t_end=1.0)
stepper.step()
kept = stepper.save()
stepper.step()
stepper.restore(kept)
del stepper, system, part
gc.collect()
del kept
gc.collect()
print("done")
"""


@pytest.mark.parametrize("fmi", [2, 3])
def test_saved_states_are_freed_in_time(fmi):
    """Python's debugging allocator fills freed memory with garbage: any access crashes."""
    environment = {**os.environ, "PYTHONMALLOC": "debug", "MALLOC_PERTURB_": "165", "MALLOC_CHECK_": "3"}
    words = RUN.format(file=str(animal("plain", fmi)))
    done = processes.run([sys.executable, "-c", words], env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="tells the memory of a process on Linux only")
def test_instances_of_earlier_runs_are_freed():
    """Two hundred runs do not take the memory of two hundred instances and their states."""
    system = cs.System({"a": cs.load_fmu(animal("plain", 2))})
    system.set("a.u", 1.0)

    def pages() -> int:
        gc.collect()
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1])

    def runs(n: int) -> None:
        for _ in range(n):
            cs.simulate(system, t_end=0.1, method=cs.SemiImplicit(1), step=0.1, compiled=False)

    runs(50)
    before = pages()
    runs(200)
    assert (pages() - before) * os.sysconf("SC_PAGE_SIZE") < 2e6  # 10 kB per run would show


def test_a_crash_in_free_does_not_take_the_result():
    """Of an FMU in a process of its own."""
    result = cs.simulate(pair(part("free_aborts", 2, isolated=True), 2), t_end=1.0, method=cs.Jacobi(0), step=0.05)
    gc.collect()
    assert result.t[-1] == 1.0
