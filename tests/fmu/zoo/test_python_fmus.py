"""Animals written in Python with pythonfmu: no derivatives, no dependencies, states that are objects."""

import os
import shutil
import sys

import numpy as np
import pytest
from tests.fmu.zoo.loop import Part
from tests.fmu.zoo.loop import run as loop
from tests.fmu.zoo.members import animal
from tests.processes import run

import cosolve as cs

#: outputs are 0 until the first step; the attribute that holds its memory is no variable
LATE = """
from pythonfmu import Fmi2Causality, Fmi2Slave, Fmi2Variability, Real

class LateLag(Fmi2Slave):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.u, self.y, self.rate, self.level = 0.0, 0.0, 2.0, 0.5
        self.register_variable(Real("u", causality=Fmi2Causality.input, start=0.0))
        self.register_variable(Real("y", causality=Fmi2Causality.output))
        self.register_variable(
            Real("rate", start=2.0, causality=Fmi2Causality.parameter, variability=Fmi2Variability.tunable)
        )

    def do_step(self, t, h):
        self.level += h * self.rate * (-0.25 * self.u - self.level)
        self.y = 2.0 * self.level
        return True
"""
#: the model raises an exception after half of the run
_GUARD = """        if t > 0.49:
            raise ValueError("the tank is empty")
"""
RAISES = LATE.replace("LateLag", "RaisingLag").replace("        self.level +=", f"{_GUARD}        self.level +=")


@pytest.fixture(scope="module")
def animals(tmp_path_factory):
    builder = pytest.importorskip("pythonfmu.builder").FmuBuilder
    folder = tmp_path_factory.mktemp("python")
    built = {}
    for name, text in {"late_lag": LATE, "raising_lag": RAISES}.items():
        source = folder / f"{name}.py"
        source.write_text(text)
        built[name] = builder.build_FMU(source, dest=folder)
    return built


def system_of(file, **options):
    a = cs.load_fmu(file, parameters={"rate": 3.0}, **options)
    system = cs.System({"a": a, "b": cs.load_fmu(animal("plain", 2), parameters={"gain": 0.5})})
    system.connect("a.y", "b.u")
    system.connect("b.y", "a.u")
    return system


@pytest.mark.parametrize("isolated", [False, True])
@pytest.mark.parametrize("sweep", ["jacobi", "gauss-seidel"])
def test_the_loop(animals, sweep, isolated):
    parts = {"a": Part(animals["late_lag"], {"rate": 3.0}), "b": Part(animal("plain", 2), {"gain": 0.5})}
    want = loop(parts, {"a.u": ("b.y", 1.0), "b.u": ("a.y", 1.0)}, t_end=1.0, step=0.05, sweep=sweep)
    system = system_of(animals["late_lag"], isolated=isolated)
    method = cs.Jacobi(0) if sweep == "jacobi" else cs.GaussSeidel(0)
    cs.check(system, method, 0.05)
    for _ in range(2):
        result = cs.simulate(system, t_end=1.0, method=method, step=0.05)
        for name, values in want.items():
            np.testing.assert_array_equal(result[name], values)


def test_an_exception_in_the_model(animals):
    """Ends the run with the name of the FMU, and what was computed is kept; fatal errors forbid further calls."""
    system = system_of(animals["raising_lag"])
    with pytest.raises(cs.errors.SubsystemError, match=r"'RaisingLag.fmu' returned 'fatal'") as caught:
        cs.simulate(system, t_end=1.0, method=cs.Jacobi(0), step=0.05)
    assert caught.value.result.t[-1] == pytest.approx(0.5)
    with pytest.raises(
        cs.errors.SubsystemError, match=r"'RaisingLag.fmu' met a fatal error before; load the FMU again"
    ):
        cs.simulate(system, t_end=1.0, method=cs.Jacobi(0), step=0.05)


ENDS = """
import cosolve as cs

system = cs.System({{"a": cs.load_fmu({file!r})}})
system.set("a.u", 1.0)
cs.simulate(system, t_end=1.0, step=0.05, method=cs.Jacobi(0))
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind")
def test_nothing_freed_is_read_at_the_end(animals):
    """The destructor of such a library freed its interpreter a second time: now and then the process aborted."""
    command = ["valgrind", "--undef-value-errors=no", sys.executable, "-c", ENDS.format(file=str(animals["late_lag"]))]
    done = run(command, env=os.environ | {"PYTHONMALLOC": "malloc"}, limit=1500.0, check=True)
    assert "ERROR SUMMARY" in done.stderr
    assert "finalizePythonInterpreter" not in done.stderr


def test_the_interpreter_of_a_library_is_let_go_once_and_before_the_end(animals):
    """By us, when its instances are freed; what is left for its destructor is an empty pointer."""
    look = """
from cosolve.fmu import binary
(image,) = binary._images.values()
class Library:
    def __init__(self, real):
        self.real = real
    def __getattr__(self, name):
        return getattr(self.real, name)
    def finalizePythonInterpreter(self):
        print("let go with", image.instances, "instances")
image.library = Library(image.library)
"""
    done = run([sys.executable, "-c", ENDS.format(file=str(animals["late_lag"])) + look], check=True)
    assert done.stdout == "let go with 0 instances\n"
