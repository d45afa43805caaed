"""The participant library for C, C++ and Fortran: programs in processes of their own, under a hub."""

import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from tests.precice.test_processes import SOLVER
from tests.precice.together import MEASURES, config, constant, iterations

import cosolve as cs
from cosolve.errors import CosolveError, SubsystemError
from cosolve.participants.hub import Hub, ListeningSocket
from cosolve.precice.config import Reader
from cosolve.precice.coupling import Coupling
from cosolve.precice.running import run_configuration
from cosolve.precice.subsystems import FirstRecords, subsystems_of
from cosolve.signal.polynomial import Polynomial

PROGRAMS = Path(__file__).parent / "programs"
S_CONST = config("serial-implicit", MEASURES + constant(0.5))
COUNTS = [70, 64, 62, 59, 54, 60, 62, 63, 63, 63]
X = [0.544325324184, 0.621589570466, 0.646378488152, 0.548273771835]
Y = [0.345971168816, 0.330740356399, 0.422908836328, 0.641715475604]

OWN = ("own.c", "ranked.c", "pair.f90", "misused.c", "reads.c", "unopened.f90")  # over cosolve's own interface

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return cs.remote.build_participant_library(tmp_path_factory.mktemp("library") / "cosolve", precice=True)


def compiled(library, source, target, *, flags=()):
    """A test program, linked as pkg-config says."""
    module = "cosolve_participant" if source in OWN else "libprecice"
    where = library if module == "cosolve_participant" else library / "precice"
    name = "cosolve_participant" if module == "cosolve_participant" else "precice"
    compiler = {".c": "cc", ".cpp": "c++", ".f90": "gfortran"}[Path(source).suffix]
    more = (
        [str(library / "fortran" / "cosolve_participant.f90"), f"-J{target.parent}"] if source.endswith("f90") else []
    )
    subprocess.run(
        [compiler, "-O1", *flags, *more, str(PROGRAMS / source), "-o", str(target), f"-I{where}/include",
         f"-L{where}/lib", f"-l{name}", f"-Wl,-rpath,{where}/lib", "-lm"],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    return target


def test_names_and_values_are_taken_as_programs_have_them(library):
    """Literals, pointers, strings, vectors, arrays: with none of them the compiler has a choice to complain about."""
    words = ["c++", "-std=c++17", "-fsyntax-only", "-Wall", "-Werror", str(PROGRAMS / "arguments.cpp")]
    done = subprocess.run([*words, f"-I{library}/precice/include"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def run(commands, folder, text=S_CONST, **environment):
    """Both programs under a hub; the numbers they print, the coupling, and their exit codes and words."""
    coupling, failure, ends = told(commands, folder, text, **environment)
    return [np.array(out.split(), float) for _, out, _ in ends], coupling, failure, ends


def told(commands, folder, text=S_CONST, watched=False, **environment):
    """Programs under a hub, to their ends; where they are watched, the hub learns that one has failed."""
    coupling = Coupling(Reader("config.xml", text.encode()).configuration, record=True)
    listener = ListeningSocket()
    finding = os.environ | {"COSOLVE_HUB": listener.address} | environment
    processes = [
        subprocess.Popen(command, env=finding, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder)
        for command in commands
    ]
    failure = None
    late = threading.Timer(60.0, lambda: [process.kill() for process in processes])  # no test may hang
    late.start()
    try:
        watch = (lambda name: "one has ended" * any(process.poll() for process in processes)) if watched else None
        Hub(coupling, listener, patience=30.0, watch=watch).serve()
    except CosolveError as error:
        failure = error
    late.cancel()
    ends = []
    for process in processes:
        try:
            out, words = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        ends.append((process.returncode, out, words))
    return coupling, failure, ends


@pytest.mark.covers("PX-17")
@pytest.mark.parametrize(("a", "b"), [("pair.c", "pair.cpp"), ("own.c", "pair.c"), ("pair.f90", "own.c")])
def test_programs_in_c_cpp_and_fortran_reproduce_the_linear_pair(library, tmp_path, a, b):
    if "pair.f90" in (a, b) and shutil.which("gfortran") is None:
        pytest.skip("no gfortran")
    programs = [compiled(library, source, tmp_path / f"side{k}") for k, source in enumerate((a, b))]
    tail = [["1"] if source == "own.c" else ["config.xml"] for source in (a, b)]
    values, coupling, failure, ends = run([[programs[0], "A", *tail[0]], [programs[1], "B", *tail[1]]], tmp_path)
    assert failure is None, ends
    assert iterations(coupling, "B") == COUNTS
    np.testing.assert_allclose(values[0], Y, rtol=0, atol=1e-10)
    np.testing.assert_allclose(values[1], X, rtol=0, atol=1e-10)


@pytest.mark.covers("PX-17")
def test_substeps_travel_and_are_interpolated_as_in_python(library, tmp_path):
    """A in three substeps and B in four with splines of degree 2: the counts and values of the plain pair."""
    text = config("serial-implicit", MEASURES + constant(0.5), degree=2, substeps='substeps="true"')
    program = compiled(library, "own.c", tmp_path / "own")
    values, coupling, failure, ends = run([[program, "A", "3"], [program, "B", "4"]], tmp_path, text)
    assert failure is None, ends
    assert iterations(coupling, "B") == COUNTS
    np.testing.assert_allclose(values[1], X, rtol=0, atol=1e-10)


@pytest.mark.covers("PX-19")
def test_inside_a_macro_step_the_polynomial_of_the_method_is_read_in_c_too(library, tmp_path):
    first_records = FirstRecords(Reader("config.xml", S_CONST.encode()).configuration)
    listener, chance, step = ListeningSocket(), np.random.default_rng(3), 0.25
    program = compiled(library, "reads.c", tmp_path / "reads")
    finding = os.environ | {"COSOLVE_HUB": listener.address}
    both = [subprocess.Popen([program, name], env=finding, stdout=subprocess.PIPE, text=True) for name in "AB"]
    late = threading.Timer(60.0, lambda: [process.kill() for process in both])  # no test may hang
    late.start()
    hub = Hub(first_records, listener, patience=30.0)
    try:
        hub.listen(lambda: first_records.done)
        subsystems = subsystems_of(first_records, hub, lambda name: "", rollback=False)
        subsystems["A"].start(0.0)
        signals = [Polynomial(k * step, step, chance.normal(size=(k + 1, 4))) for k in range(13)]
        for u in signals:
            subsystems["A"].advance(u.t0, u.t0 + step, u)
        for one in subsystems.values():
            one.finish()
        printed = [process.communicate(timeout=30)[0] for process in both]
    finally:
        late.cancel()
        hub.close()
        for process in both:
            process.kill()
            process.communicate()
    rows = np.array([line.split() for line in printed[0].splitlines()], float).reshape(13, 11, 5)
    for u, window in zip(signals, rows, strict=True):
        for t, *values in window:
            assert np.abs(values - u(t)).max() <= 1e-12 * np.abs(u.coefficients).max(), (u.degree, t)


@pytest.mark.covers("PX-17")
def test_ranks_of_a_program_in_c_give_the_bits_of_one_process(library, tmp_path):
    program = compiled(library, "ranked.c", tmp_path / "ranked")
    commands = [[program, name, str(rank), str(size)] for name, size in (("A", 3), ("B", 2)) for rank in range(size)]
    values, _, failure, ends = run(commands, tmp_path)
    assert failure is None, ends
    alone, _, failure, ends = run([[program, "A", "0", "1"], [program, "B", "0", "1"]], tmp_path)
    assert failure is None, ends
    assert np.concatenate(values[:3]).tolist() == alone[0].tolist()
    assert np.concatenate(values[3:]).tolist() == alone[1].tolist()


@pytest.mark.covers("PX-17")
def test_every_name_of_the_interface_is_there_and_the_library_is_small(library):
    built = library / "lib" / "libcosolve_participant.so"
    assert built.stat().st_size < 300_000
    names = subprocess.run(["nm", "-D", "--demangle", built], capture_output=True, text=True, check=True).stdout
    header = (library / "precice" / "include" / "precice" / "precice.hpp").read_text()
    methods = set(re.findall(r"^  (?:void|int|bool|double|VertexID) (\w+)\(", header, re.M))
    assert len(methods) == 34
    for method in methods:
        assert f"precice::Participant::{method}(" in names
    assert "precice::span<double const, 18446744073709551615ul>" in names
    functions = re.findall(
        r"\b(precicec_\w+)\(", (PROGRAMS / "../../../src/cosolve/participants/library/precice/preciceC.h").read_text()
    )
    assert len(set(functions)) == 37
    assert set(functions) <= set(re.findall(r" T (precicec_\w+)", names))
    needed = subprocess.run(["readelf", "-d", built], capture_output=True, text=True, check=True).stdout
    wanted = set(re.findall(r"NEEDED.*\[(\w+)", needed))
    assert wanted <= {"libstdc", "libm", "libgcc_s", "libc", "ld"}, wanted


@pytest.mark.slow
@pytest.mark.covers("PX-17")
def test_memory_is_used_as_it_should_be(library, tmp_path):
    """The same program with the sources of the library and the address sanitiser in it."""
    sources = Path(cs.__file__).parent / "participants" / "library"
    program = tmp_path / "checked"
    made = subprocess.run(
        ["c++", "-std=c++17", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-I{sources}",
         *(str(sources / f"{name}.cpp") for name in ("participant", "c_interface", "precice_interface")),
         str(PROGRAMS / "pair.cpp"), "-o", str(program), "-pthread"],
        capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    if made.returncode and "asan" in made.stderr:
        pytest.skip("no sanitiser library")
    assert made.returncode == 0, made.stderr
    values, _, failure, ends = run([[program, "A", "config.xml"], [program, "B", "config.xml"]], tmp_path)
    assert failure is None, ends
    assert [end[0] for end in ends] == [0, 0]
    np.testing.assert_allclose(values[1], X, rtol=0, atol=1e-10)


@pytest.mark.covers("PX-18")
def test_the_launcher_couples_cpp_and_python_and_names_the_one_that_dies(library, tmp_path, monkeypatch):
    program = compiled(library, "pair.cpp", tmp_path / "side")
    (tmp_path / "config.xml").write_text(S_CONST)
    (tmp_path / "solver.py").write_text(SOLVER)
    monkeypatch.chdir(tmp_path)
    commands = {"A": f"{program} A config.xml > a.txt", "B": f"{sys.executable} solver.py B none"}
    coupling = run_configuration("config.xml", commands)
    assert iterations(coupling, "B") == COUNTS
    np.testing.assert_allclose(np.array((tmp_path / "a.txt").read_text().split(), float), Y, rtol=0, atol=1e-10)
    np.testing.assert_allclose(np.load(tmp_path / "B.npy"), X, rtol=0, atol=1e-10)
    commands["B"] = f"{sys.executable} solver.py B killed"
    with pytest.raises(SubsystemError, match=r"participant 'B' was ended \(signal 9, SIGKILL\); its last output"):
        run_configuration("config.xml", commands, logs=tmp_path / "logs")
    assert "participant 'B' was ended (signal 9, SIGKILL)" in (tmp_path / "logs/A.log").read_text()


@pytest.mark.covers("PX-18")
def test_a_nan_in_one_program_ends_both_with_its_name(library, tmp_path):
    program = compiled(library, "pair.cpp", tmp_path / "pair")
    _, _, failure, ends = run([[program, "A", "config.xml"], [program, "B", "config.xml"]], tmp_path, SPOILT="1")
    assert failure is not None
    assert [end[0] for end in ends] == [1, 1]
    assert "A: data 'Y' on mesh 'MA' at t = 0 would hold a NaN" in ends[0][2]
    assert "B: participant 'A' has finished before the coupling has ended" in ends[1][2]


WRONG = {
    "dimensions(none": "no participant: cosolve_open it first",
    "advance(none": "no participant: cosolve_open it first",
    "must_save(none": "no participant: cosolve_open it first",
    'open("A"': "A: participant 'A' is connected already",
    'open("Absent"': "Absent: there is no participant 'Absent' in this coupling; there are 'A', 'B'",
    'set_points(solver, "MC"': "A: has no mesh 'MC'; its meshes are ",
    'set_points(solver, "MB"': "A: mesh 'MB' is received from another participant, which sets its points",
    'set_points(solver, "MA", -4': "a number of points is negative",
    "advance(solver, 0.1": "A: start it before it advances",
    'read(solver, "MA", "X", 0.0': "A: nothing can be read before the start",
    'write(solver, "MA", "Z"': "A: has no data 'Z' on mesh 'MA'; there are ",
    'write(solver, "MA", "X"': "A: does not write data 'X' on mesh 'MA'",
    'write(solver, "MA", "Y", 4, NULL, bad': "A: data 'Y' on mesh 'MA' at t = 0 would hold a NaN or an infinity",
    'write(solver, "MA", "Y", 3': "A: mesh 'MA' has 4 points, not 3",
    'write(solver, "MA", "Y", 4, far': "A: mesh 'MA' has the points 0 to 3, not 4",
    "start(solver": "A: was started already",
    'set_points(solver, "MA", 4': "A: the points of mesh 'MA' can be set only before the start",
    "advance(solver, 0.2": "A: a step of 0.2 is not above 0 and at most 0.1",
    "advance(solver, NAN": "A: a step of nan is not above 0 and at most 0.1",
    "advance(solver, 0.0": "A: a step of 0 is not above 0 and at most 0.1",
    'read(solver, "MA", "X", 0.2': "A: data 'X' are known for the next 0.1 s, not 0.2 s from now",
}


@pytest.fixture(scope="module")
def misused(library, tmp_path_factory):
    return compiled(library, "misused.c", tmp_path_factory.mktemp("misused") / "misused")


@pytest.mark.covers("PX-17", "PX-18")
def test_wrong_calls_in_c_are_told_and_one_that_leaves_is_named(library, misused, tmp_path):
    """Wrong order, wrong names, NaN, two of one name: -1 and a sentence each; nothing crashes and nothing hangs."""
    other = compiled(library, "own.c", tmp_path / "own")
    _, failure, ends = told([[misused, "leaves"], [other, "B", "1"]], tmp_path)
    lines = ends[0][1].splitlines()
    for call, words in WRONG.items():
        assert [line for line in lines if call in line and f": -1: {words}" in line], (call, lines)
    assert any("advance(solver, 0.1): -1: A: its state must be saved here; ask must_save" in line for line in lines)
    assert "0 1" in lines  # without a participant nothing goes on, and times are NaN
    assert str(failure) == "participant 'A' is gone before the coupling has ended"
    assert "participant 'A' is gone before the coupling has ended" in ends[1][2]


@pytest.mark.covers("PX-18")
def test_a_program_in_c_that_looks_at_no_answer_comes_out_of_its_loop(misused, tmp_path):
    _, failure, ends = told([[misused, "ignores"], [misused, "quits"]], tmp_path)
    assert str(failure) == "participant 'B' is gone before the coupling has ended"
    assert ends[0][1].splitlines()[-1] == "came out: A: participant 'B' is gone before the coupling has ended"


@pytest.fixture(scope="module")
def misused_one(library, tmp_path_factory):
    return compiled(library, "misused_one.c", tmp_path_factory.mktemp("misused") / "misused_one")


@pytest.mark.covers("PX-17", "PX-18")
@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("unmade", "no participant: call precicec_createParticipant first"),
        ("name", "there is no participant 'Absent' in this coupling"),
        ("twice", "participant 'A' is connected already"),
        ("mesh", "A: has no mesh 'MC'; its meshes are "),
        ("advance", "A: start it before it advances"),
        ("read", "A: nothing can be read before the start"),
        ("unasked", "initial data are due; ask requiresInitialData before initialize"),
        ("nan", "A: data 'Y' on mesh 'MA' at t = 0 would hold a NaN or an infinity"),
        ("id", "A: mesh 'MA' has the points 0 to 0, not 7"),
    ],
)
def test_a_wrong_call_of_the_other_interface_ends_the_program_with_a_sentence(misused_one, tmp_path, what, words):
    _, failure, ends = told([[misused_one, what]], tmp_path, watched=True)
    code, out, said = ends[0]
    assert code == 1
    assert out == ""
    assert words in said
    assert failure is not None


@pytest.mark.skipif(shutil.which("gfortran") is None, reason="no gfortran")
def test_a_participant_that_was_not_opened_ends_a_program_in_fortran_with_a_sentence(library, tmp_path):
    program = compiled(library, "unopened.f90", tmp_path / "unopened")
    done = subprocess.run([program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr.splitlines()[0]) == (1, "", "no participant: open it first")


def test_cmake_and_pkg_config_find_it(library, tmp_path):
    if shutil.which("pkg-config"):
        where = os.environ | {"PKG_CONFIG_PATH": f"{library}/lib/pkgconfig:{library}/precice/lib/pkgconfig"}
        asked = ["pkg-config", "--libs", "--cflags", "cosolve_participant", "libprecice"]
        said = subprocess.run(asked, env=where, capture_output=True, text=True, check=True).stdout
        assert "-lcosolve_participant" in said
        assert "-lprecice" in said
    if shutil.which("cmake") is None:
        pytest.skip("no cmake")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(solver CXX)\nfind_package(precice 3 REQUIRED CONFIG)\n"
        f"add_executable(solver {PROGRAMS / 'pair.cpp'})\ntarget_link_libraries(solver PRIVATE precice::precice)\n"
    )
    for command in (
        ["cmake", "-S", ".", "-B", "made", f"-DCMAKE_PREFIX_PATH={library}/precice"],
        ["cmake", "--build", "made"],
    ):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_library_that_is_there_is_left_alone(library):
    with pytest.raises(cs.errors.SetupError, match="is there already"):
        cs.remote.build_participant_library(library)
