"""Run options are stated once: arguments, documentation, keys of files, flags, settings of a state."""

import inspect
import re
from dataclasses import field, make_dataclass

import pytest
from typer.testing import CliRunner

import cosolve as cs
from cosolve.cli import app
from cosolve.io.schema import OutputTable, SimulationTable
from cosolve.options import RunOptions, StepperOptions, about, documented, known_options, takes
from cosolve.state.codec import read_tree
from cosolve.state.snapshot import THE_RUN
from cosolve.state.state_writer import state_path


def test_arguments_and_their_documentation_are_those_of_the_list():
    for function, kind in ((cs.simulate, RunOptions), (cs.Stepper, StepperOptions)):
        known = known_options(kind)
        parameters = dict(inspect.signature(function).parameters)
        parameters.pop("system")
        assert list(parameters) == list(known)
        for name, one in known.items():
            assert parameters[name].default == one.default
            assert f"    {name} : {one.words}" in function.__doc__


def test_files_and_the_command_line_have_them():
    flags = set(re.findall(r"--[a-z-]+", CliRunner().invoke(app, ["run", "--help"], env={"COLUMNS": "200"}).output))
    keys = {"simulation": SimulationTable.model_fields, "output": OutputTable.model_fields}
    for name, known in known_options(RunOptions).items():
        if known.about.table is not None:
            assert (known.about.key or name) in keys[known.about.table]
        if known.about.flag:
            assert known.flag in flags, name


def test_a_state_keeps_them(tmp_path):
    tank = cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[1.0], inputs=["q"], outputs=["h"])
    system = cs.System({"tank": tank})
    system.set("tank.q", 0.0)
    file = tmp_path / "run.h5"
    with pytest.raises(cs.errors.StepSizeError):
        cs.simulate(system, t_end=1.0, method=cs.Jacobi(), step=0.1, save=file, state_every=2, max_steps=5)
    settings = read_tree(state_path(file))[THE_RUN]["settings"]
    kept = {name for name, known in known_options(RunOptions).items() if known.about.kept}
    assert kept | {"observers", "state_every"} == set(settings)


def test_a_new_option_needs_one_line():
    """It is an argument with its documentation, typed and checked, wherever the list is read."""
    colour = field(default="red", metadata=about("Colour of the run.", check=_refuse_blue))
    kind = make_dataclass("Coloured", [("colour", "str", colour)], bases=(RunOptions,), frozen=True, kw_only=True)

    @takes(kind, "run(system, t_end=1.0)")
    def run(system, options):
        """Run.

            Parameters
            ----------
            system : System
                The system.
        {options}
        """
        return options.colour

    assert run("system", t_end=1.0) == "red"
    assert inspect.signature(run).parameters["colour"].default == "red"
    with pytest.raises(cs.errors.SetupError, match="no blue"):
        run("system", t_end=1.0, colour="blue")
    assert "colour : str, default 'red'\n        Colour of the run." in documented("    {options}", kind, "    ")


def _refuse_blue(who, colour):
    if colour == "blue":
        raise cs.errors.SetupError("no blue")


def test_wrong_names_and_values_are_refused():
    tank = cs.System({"clock": cs.Static(lambda t, u: t, inputs=[], outputs=["t"])})
    with pytest.raises(TypeError, match="unexpected keyword argument 'stpe'; did you mean 'step'"):
        cs.simulate(tank, t_end=1.0, method=cs.Jacobi(), stpe=0.1)
    with pytest.raises(TypeError, match="missing a required argument: 't_end'"):
        cs.simulate(tank, method=cs.Jacobi(), step=0.1)
    with pytest.raises(cs.errors.SetupError, match="takes only its first argument without a name"):
        cs.simulate(tank, 1.0)
    for name, value in (("every", 0), ("max_steps", 1.5), ("workers", 0)):
        with pytest.raises(cs.errors.SetupError, match=f"simulate: {name} must be a whole number"):
            cs.simulate(tank, t_end=1.0, method=cs.Jacobi(), step=0.1, **{name: value})
