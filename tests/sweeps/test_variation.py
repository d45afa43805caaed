"""`cs.sweep(system, {"one.k": ...})`: a system with parameters, without a build function."""

import numpy as np
import pytest

import cosolve as cs

RUN = {"methods": cs.Jacobi(1), "steps": 0.01, "reduce": "trajectory"}


def pendulums(k: float = 4.0) -> cs.System:
    def rhs(t, x, u, p):
        return [x[1], -p.k * np.sin(x[0]) - p.c * x[1] + u[0]]

    def part(x0):
        functions = rhs, lambda t, x, u, p: [x[0], p.k * x[1]]
        return cs.Ode(
            *functions, x0=[x0, 0.0], inputs=["u", "load"], outputs=["x", "kv"], parameters={"k": k, "c": 0.1}
        )

    system = cs.System({"one": part(1.0), "two": part(0.2)})
    system.law({"one.u": 1, "two.u": -1}, lambda a, b: 0.5 * np.tanh(b - a), of=["one.x", "two.x"])
    system.set("one.load", 0.5)
    system.set("two.load", 0.0)
    return system


def test_variants_are_those_of_systems_built_with_these_values() -> None:
    system = pendulums()
    found = cs.sweep(system, {"one.k": [1.0, 9.0], "two.c": [0.0, 3.0]}, t_end=0.3, compiled=True, **RUN)
    assert found["one.x"].dims[:2] == ("one.k", "two.c")
    assert "compiled" in found.attrs["how"]
    for k in (1.0, 9.0):
        for c in (0.0, 3.0):
            built = pendulums()
            built.subsystems["one"].set_parameters({"k": k})
            built.subsystems["two"].set_parameters({"c": c})
            expected = cs.simulate(built, t_end=0.3, method=cs.Jacobi(1), step=0.01, compiled=False)
            for name in ("one.x", "one.kv", "two.x"):
                swept = found[name].sel({"one.k": k, "two.c": c}).values
                assert swept.tobytes() == expected[name].tobytes()


def test_machine_code_is_made_once() -> None:
    """Another value is other numbers in the table of the same code."""
    from cosolve.jit.assembly import kept

    system = pendulums()
    cs.sweep(system, {"one.k": [1.5, 2.5]}, t_end=0.3, compiled=True, **RUN)
    made = kept.cache_info().misses
    cs.sweep(system, {"one.k": [3.5, 4.5, 5.5]}, t_end=0.3, compiled=True, **RUN)
    assert kept.cache_info().misses == made


def test_constant_inputs_vary_too_and_values_return() -> None:
    system = pendulums()
    found = cs.sweep(system, [{"one.load": 1.0, "one.k": 2.0}, {"one.load": 3.0, "one.k": 3.0}], t_end=0.1, **RUN)
    assert found["one.x"].shape == (2, 11)
    assert system.subsystems["one"].parameters == {"k": 4.0, "c": 0.1}
    plain = cs.simulate(system, t_end=0.1, method=cs.Jacobi(1), step=0.01)
    assert (
        plain["one.x"].tobytes()
        == cs.simulate(pendulums(), t_end=0.1, method=cs.Jacobi(1), step=0.01)["one.x"].tobytes()
    )


@pytest.mark.parametrize("address", ["one.m", "three.k", "one.x"])
def test_unknown_addresses_are_refused(address) -> None:
    with pytest.raises(cs.errors.SetupError, match=f"'{address}' is no parameter and no constant input"):
        cs.sweep(pendulums(), {address: [1.0]}, t_end=0.1, **RUN)


def test_parameters_change_during_a_run() -> None:
    """`System.at` knows them; the next run begins with the values from before."""
    system = pendulums()
    system.at(0.2, {"one.k": 50.0})
    first, second = (cs.simulate(system, t_end=0.4, method=cs.Jacobi(1), step=0.01) for _ in range(2))
    plain = cs.simulate(pendulums(), t_end=0.4, method=cs.Jacobi(1), step=0.01)
    assert first["one.x"].tobytes() == second["one.x"].tobytes()
    assert first["one.x"][:20].tobytes() == plain["one.x"][:20].tobytes()
    assert abs(first["one.x"][-1] - plain["one.x"][-1]) > 0.01


def test_static_subsystems_have_them_as_well() -> None:
    gain = cs.Static(lambda t, u, p: p.k * u[0], inputs=["u"], outputs=["y"], parameters={"k": 3.0})
    assert gain.output(0.0, np.array([2.0])) == 6.0
    gain.set_parameters({"k": 5.0})
    assert gain.output(0.0, np.array([2.0])) == 10.0
    with pytest.raises(cs.errors.SetupError, match="Static has no parameter 'm'; it has 'k'"):
        gain.set_parameters({"m": 5.0})
    with pytest.raises(cs.errors.SetupError, match="must be a finite number"):
        gain.set_parameters({"k": np.nan})


@pytest.mark.parametrize("parameters", [[1.0], {"a b": 1.0}, {1: 2.0}])
def test_parameters_are_names_and_numbers(parameters) -> None:
    with pytest.raises(cs.errors.SetupError, match="parameters are a dict of names and numbers"):
        cs.Static(lambda t, u, p: u, inputs=["u"], outputs=["y"], parameters=parameters)
