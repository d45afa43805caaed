"""Subsystems on the ranks of an MPI job: the bits of one process, work at the same time, and orderly ends."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests import processes
from tests.fmu.build import fmu

import cosolve as cs
from cosolve.process import mpi

ROOT = Path(__file__).parents[3]
CLI = ("-m", "cosolve.cli")
TRIAL = "from mpi4py import MPI; import sys; sys.exit(0 if MPI.COMM_WORLD.size == 2 else 5)"


@cache
def mpiexec() -> str:
    """The mpiexec of this environment; skips where it is missing or cannot start processes."""
    pytest.importorskip("mpi4py", reason="MPI is missing: mpi4py is not installed")
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        pytest.skip("MPI is missing: there is no mpiexec")
    with processes.started([found, "-n", "2", sys.executable, "-c", TRIAL], limit=60.0) as process:
        code = process.wait()  # of a process that was killed where it hangs
    if code:
        pytest.skip(f"mpiexec cannot start processes of this Python here: exit code {code}")
    return found


def job(ranks: int, *arguments: object) -> list[str]:
    """`mpiexec -n ranks python arguments`."""
    return [mpiexec(), "-n", str(ranks), sys.executable, *map(str, arguments)]


def ran_on(ranks: int, *arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A job to its end."""
    return processes.run(job(ranks, *arguments), cwd=cwd, env=processes.environment(OPENBLAS_NUM_THREADS="1"))


FILE = """
[subsystems.s0]
factory = "tests.process.ranks.parts:Oscillator"
parameters = {{x = -0.5}}
[subsystems.s1]
factory = "tests.process.ranks.parts:{second}"
parameters = {{{parameters}}}
[subsystems.s2]
factory = "tests.process.ranks.parts:Oscillator"
parameters = {{x = 0.1, c = 6.0}}
[[laws]]
inputs = "s0.force"
linear = {{"s1.x" = 3.0, "s0.x" = -3.0}}
[[laws]]
inputs = "s1.force"
linear = {{"s2.x" = 3.0, "s1.x" = -3.0}}
[[laws]]
inputs = "s2.force"
linear = {{"s0.x" = 3.0, "s2.x" = -3.0}}
[simulation]
t_end = 1.0
method = {{name = "semi-implicit", degree = 1}}
step = 0.1
{ranks}
"""


def written(folder: Path, second: str = "Oscillator", parameters: str = "x = 0.2", ranks: str = "") -> Path:
    path = folder / "ring.toml"
    path.write_text(FILE.format(second=second, parameters=parameters, ranks=ranks))
    return path


@pytest.mark.covers("IJ-41", "SC-24", "SC-25", "SC-26")
def test_every_method_gives_the_bits_of_one_process_and_ranks_work_at_the_same_time(tmp_path):
    """One job for all: methods, a large field, subsystems that only pass when they advance together, a move."""
    ran = ran_on(3, ROOT / "tests" / "process" / "ranks" / "job.py", tmp_path)
    assert ran.returncode == 0, ran.stderr
    *lines, last = ran.stdout.splitlines()
    said = dict(json.loads(line) for line in lines)
    assert last == "rank 0 is the only one that comes here"
    assert said.pop("placement") == (
        "3 ranks: 's0', 'g', 'one' on rank 0, 's1', 's3', 'a', 'f', 'two', 'client1', 'client3' on rank 1, "
        "'s2', 'b', 'three', 'late', 'client2' on rank 2"
    )
    assert said.pop("together") == said.pop("columns together") == 4
    assert 0 < said.pop("looks while it waits") < 10_000  # 106; one that never sleeps looks some 100 000 times a second
    assert len(said) == 16
    assert all(value is True for value in said.values()), said


def test_a_call_that_takes_too_long_ends_the_run_with_a_sentence(tmp_path):
    """Rank 1 hangs in a subsystem step; rank 0 says so, keeps the result and ends the job."""
    (tmp_path / "late.py").write_text(
        "from functools import partial\nimport sys\nimport cosolve as cs\nfrom tests.process.ranks.parts import Bad\n"
        "ranks = cs.remote.on_ranks({'s': partial(Bad, 'hang', sys.argv[1])}, placement={'s': 1}, timeout=1.0)\n"
        "system = cs.System(ranks.subsystems)\nsystem.set('s.force', 0.0)\n"
        "try:\n    cs.simulate(system, t_end=1.0, method=cs.Jacobi(0), step=0.1)\n"
        "except cs.errors.SubsystemError as error:\n    print(error, len(error.result.t), sep='|', flush=True)\n"
    )
    ran = ran_on(2, tmp_path / "late.py", tmp_path)
    assert "'s' failed while advancing on rank 1 at t = 0.5: rank 1 gave no answer within 1 s" in ran.stdout
    assert ran.stdout.strip().endswith("|6")
    assert "rank 1 did not come to its end within 2 s; all are ended" in ran.stderr
    assert ran.returncode != 0


@pytest.mark.slow
def test_one_fmu_is_refused_on_several_ranks_and_runs_on_one(tmp_path):
    file = fmu("mass_force", 2)
    for n, code, words in ((2, 2, "runs in one process, without mpiexec"), (1, 0, "")):
        ran = ran_on(n, *CLI, "run", file, "--t-end", 0.1, "--out", tmp_path / "one.h5")
        assert ran.returncode == code, ran.stderr
        assert words in ran.stderr


@pytest.mark.slow
def test_a_system_file_is_placed_by_cost_and_gives_the_bits_of_one_process(tmp_path):
    """The dear one alone on rank 0, the two cheap ones on rank 1: 20 ms against microseconds, whatever the load."""
    file = written(tmp_path, "Slow", "seconds = 0.02")
    ran = ran_on(2, *CLI, "run", file, "--out", tmp_path / "far.h5")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[0] == "2 ranks: 's1' on rank 0, 's0', 's2' on rank 1"
    near, far = cs.load_system(file).run(), cs.load_result(tmp_path / "far.h5")
    for name in near.names:
        assert np.array_equal(near[name], far[name])


def test_a_subsystem_that_fails_on_a_rank_is_named_with_it_and_the_result_is_kept(tmp_path):
    file = written(tmp_path, "Bad", 'deed = "raise"', "ranks = {s1 = 2}")
    ran = ran_on(4, *CLI, "run", file, "--out", tmp_path / "kept.h5")
    assert ran.returncode == 3
    assert "nothing to do for rank 3" in ran.stdout
    assert ran.stderr.splitlines()[0] == (
        "cosolve: 's1' failed while advancing on rank 2 at t = 0.5: no flow left (ZeroDivisionError)"
    )
    assert len(cs.load_result(tmp_path / "kept.h5").t) == 6


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_the_example_of_the_page_runs_on_ranks(tmp_path, n):
    """The same digits on every number of ranks; the dearer of two equal masses is a matter of chance."""
    page = (ROOT / "docs" / "howto.md").read_text()
    (script,) = re.findall(r"^```python\n(# ranks.py.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "ranks.py").write_text(script)
    ran = ran_on(n, tmp_path / "ranks.py")
    assert ran.returncode == 0, ran.stderr
    placed, value = ran.stdout.splitlines()
    assert re.fullmatch(
        rf"{n} ranks: '(one|two)' on rank 0, '(one|two)' on rank 1(; nothing to do for rank 2)?", placed
    )
    alone = processes.run([sys.executable, tmp_path / "ranks.py"], env=processes.environment(), check=True)
    assert alone.stdout.splitlines() == ["1 rank: 'one', 'two' on rank 0", value]


@pytest.mark.slow
@pytest.mark.parametrize("deed", ["kill", "exit"])
def test_a_rank_that_is_gone_ends_the_job(tmp_path, deed):
    file = written(tmp_path, "Bad", f'deed = "{deed}"', "ranks = {s1 = 1}")
    assert ran_on(2, *CLI, "run", file, "--out", tmp_path / "kept.h5").returncode != 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("ranks = {s1 = 5}", "'s1' is placed on rank 5, but there are 2 ranks"),
        ("ranks = {s9 = 1}", "there is no subsystem 's9' to place on a rank"),
        ("workers = 0", "workers"),
    ],
)
def test_a_bad_file_is_refused_once(tmp_path, change, words):
    ran = ran_on(2, *CLI, "run", written(tmp_path, ranks=change))
    assert ran.returncode == 2
    assert ran.stderr.count("cosolve:") == 1
    assert words in ran.stderr


@pytest.mark.slow
def test_what_cannot_be_built_on_its_rank_is_named_with_it(tmp_path):
    file = written(tmp_path, "Oscillator", "y = 1.0", "ranks = {s0 = 0, s1 = 1, s2 = 0}")
    ran = ran_on(2, *CLI, "run", file)
    assert ran.returncode == 2
    assert re.match(r"cosolve: 's1' on rank 1: .*ring.toml.*'y'", ran.stderr), ran.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_keeps_the_result_and_ends_all_ranks(tmp_path):
    """Rank 1 hangs in a subsystem step; Ctrl-C reaches all ranks through mpiexec."""
    file = written(tmp_path, "Bad", f'deed = "hang", folder = "{tmp_path}"', "ranks = {s1 = 1}")
    command = job(2, *CLI, "run", file, "--out", tmp_path / "kept.h5")
    environment = processes.environment(OPENBLAS_NUM_THREADS="1")
    with processes.started(command, env=environment, stderr=subprocess.PIPE) as process:
        assert processes.until(lambda: (tmp_path / "hangs").exists())
        ranks = processes.children(process.pid)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        assert process.wait() != 0
        assert "ended by Ctrl-C; what was computed so far" in said
        assert all(processes.ends(pid) for pid in ranks)
    assert len(cs.load_result(tmp_path / "kept.h5").t) == 6


# -- without mpiexec ------------------------------------------------------------


def test_a_launcher_of_another_mpi_is_noticed():
    """Two processes, says the launcher; each of them is alone, says the library."""
    pytest.importorskip("mpi4py", reason="MPI is missing: mpi4py is not installed")
    code = "import cosolve as cs; cs.remote.on_ranks({'one': cs.Subsystem})"
    environment = processes.environment(PMI_SIZE="2", PMI_RANK="0", PMI_ID="0")
    ran = processes.run([sys.executable, "-W", "ignore", "-c", code], env=environment)
    assert ran.returncode == 1
    assert "mpiexec has started 2 processes, but it belongs to another MPI" in ran.stderr


def test_without_mpi4py_there_is_a_sentence(monkeypatch):
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(cs.errors.SetupError, match=r"mpi4py is missing; pip install 'cosolve\[mpi\]'"):
        mpi.world()


def test_without_mpiexec_there_is_one_rank():
    tank = cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["u"], outputs=["x"])
    ranks = cs.remote.on_ranks({"one": tank, "two": lambda: tank}, placement={"one": 3})
    assert str(ranks) == "1 rank: 'one', 'two' on rank 0"
    assert ranks.subsystems["one"] is tank
    ranks.balance({"one": 2.0})
    with pytest.raises(cs.errors.SetupError, match="no subsystem 'three'"):
        ranks.balance({"three": 1.0})
    with pytest.raises(cs.errors.SetupError, match="costs are positive numbers"):
        ranks.balance({"one": -1.0})
    with pytest.raises(cs.errors.SetupError, match="'two' has no rank"):
        ranks.place({"one": 0})
    with pytest.raises(cs.errors.SetupError, match="no function that builds one"):
        cs.remote.on_ranks({"one": 3.0})
    with pytest.raises(cs.errors.SetupError, match="takes subsystems by name"):
        cs.remote.on_ranks([tank])
    with pytest.raises(cs.errors.SetupError, match="functions is a list of functions of time, not 3"):
        cs.remote.on_ranks({"one": tank}, functions=3)
    ranks.close()
