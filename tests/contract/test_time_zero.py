"""Features of a run give the same wherever its time begins: elsewhere they are tried from t = 0 on, here from others.

All times are whole numbers of 1/64 s, so that only rounding differs, if anything does.
"""

from collections.abc import Callable

import numpy as np
import pytest
from tests.contract.test_invariance import COLUMNS, METHODS, STEP, system
from tests.fmu.build import fmu

import cosolve as cs

LENGTH = 0.5


def _columns(result: cs.Result) -> np.ndarray:
    return np.array([result[name] for name in COLUMNS])


def _error_bar(t0: float, method: cs.Method) -> np.ndarray:
    made = system()
    result = cs.simulate(made, t_start=t0, t_end=t0 + LENGTH, method=method, step=STEP)
    bar = cs.error_bar(made, result)
    return np.array([bar.worst, *(bar.bar[name][-1] for name in COLUMNS)])


def _error_bar_of_the_run(t0: float) -> np.ndarray:
    options = {"t_start": t0, "t_end": t0 + LENGTH, "method": cs.SemiImplicit(1), "step": STEP}
    return np.array([cs.simulate(system(), **options, error_bar=True).error_bar.worst])


def _chosen(t0: float) -> np.ndarray:
    result = cs.simulate(system(), t_start=t0, t_end=t0 + 2.0, rtol=1e-3)
    return np.array([float(sum(map(ord, result.method.label))), *_columns(result)[:, -1]])


def _thinned(t0: float) -> np.ndarray:
    options = {"t_start": t0, "t_end": t0 + LENGTH, "method": cs.SemiImplicit(1), "step": STEP, "every": 7}
    result = cs.simulate(system(), **options)
    return np.vstack([result.t - t0, _columns(result)])


def _driven(t0: float) -> np.ndarray:
    """A table and a function of time, shifted with the run; both have a kink inside a macro step."""
    made = cs.System({"tank": cs.Linear([[-1.0]], [[1.0, 1.0]], [[1.0]], x0=[0.2], inputs=["a", "b"], outputs=["h"])})
    made.set("tank.a", cs.Table([t0 - 1.0, t0 + 0.2265625, t0 + 2.0], [0.0, 1.0, 0.0]))
    made.set("tank.b", lambda t: abs(t - t0 - 0.1))
    return cs.simulate(made, t_start=t0, t_end=t0 + LENGTH, method=cs.Jacobi(1), step=STEP)["tank.h"]


def _nested(t0: float) -> np.ndarray:
    inside = cs.System({"one": _tank(1.0), "two": _tank(0.0)})
    inside.connect("one.h", "two.q")
    pair = cs.Nested(inside, method=cs.SemiImplicit(1), step=STEP / 3, inputs={"q": "one.q"}, outputs={"h": "two.h"})
    made = cs.System({"pair": pair, "last": _tank(0.5)})
    made.connect("pair.h", "last.q")
    made.connect("last.h", "pair.q")
    return cs.simulate(made, t_start=t0, t_end=t0 + LENGTH, method=cs.SemiImplicit(2), step=STEP)["last.h"]


def _tank(x: float) -> cs.Linear:
    return cs.Linear([[-1.0]], [[1.0]], [[1.0]], x0=[x], inputs=["q"], outputs=["h"])


def _swept(t0: float) -> np.ndarray:
    def build(gain: float) -> cs.System:
        made = cs.System(
            {"one": _tank(1.0), "two": cs.Linear([[-1.0]], [[gain]], [[1.0]], x0=[0.0], inputs=["q"], outputs=["h"])}
        )
        made.connect("one.h", "two.q")
        made.connect("two.h", "one.q")
        return made

    options = {"methods": [cs.Jacobi(2), cs.SemiImplicit(2)], "steps": [STEP, STEP / 2], "reduce": "end", "workers": 1}
    found = cs.sweep(build, {"gain": [0.5, 1.0]}, t_start=t0, t_end=t0 + LENGTH, record="two.h", **options)
    return np.asarray(found["two.h"])


def _stepped(t0: float) -> np.ndarray:
    with cs.Stepper(system(), method=cs.SemiImplicit(2), step=STEP, t_start=t0, record=True) as stepper:
        stepper.run_until(t0 + 0.25)
        stepper.run_until(t0 + LENGTH)
        return np.vstack([stepper.result().t - t0, _columns(stepper.result())])


def _fmus(t0: float, name: str, version: int) -> np.ndarray:
    part = cs.load_fmu(
        fmu(name, version), **({"integrator": "ode4", "internal_step": STEP / 4} if "me" in name else {})
    )
    made = cs.System({"ball": part})
    made.set("ball.push", 0.5)
    result = cs.simulate(made, t_start=t0, t_end=t0 + 1.5, method=cs.Jacobi(0), step=STEP)
    return np.array([result["ball.x"], result["ball.v"], result["ball.bounces"]])


FEATURES: dict[str, Callable[[float], np.ndarray]] = {
    **{f"error bar, {name}": lambda t0, m=METHODS[name]: _error_bar(t0, m) for name in ("jacobi 2", "semi-implicit 2")},
    "error bar of the run": _error_bar_of_the_run,
    "method and step chosen": _chosen,
    "every seventh row": _thinned,
    "driven inputs": _driven,
    "nested": _nested,
    "sweep": _swept,
    "stepper": _stepped,
    **{
        f"{name}, FMI {version}": lambda t0, n=name, v=version: _fmus(t0, n, v)
        for name in ("ball", "ball_me", "ball_iterates")
        for version in (2, 3)
    },
}


@pytest.mark.parametrize("feature", FEATURES)
def test_the_same_from_another_time_on(feature: str) -> None:
    expected = FEATURES[feature](0.0)
    assert np.isfinite(expected).all()
    for t0 in (-3.0, 128.0):
        assert FEATURES[feature](t0) == pytest.approx(expected, rel=1e-9, abs=1e-11), t0


def test_a_saved_run_goes_on_from_another_time(tmp_path) -> None:
    """From -3 to -2.5, with a state in the middle, and with one at t = 0."""
    for t0 in (-3.0, -0.25):
        options = {"method": cs.SemiImplicit(2), "step": STEP, "t_end": t0 + LENGTH}
        whole = cs.simulate(system(), t_start=t0, **options)
        cs.simulate(system(), t_start=t0, **{**options, "t_end": t0 + 0.25}, save_state=tmp_path / "state")
        rest = cs.simulate(system(), **options, resume=tmp_path / "state")
        assert rest.t[0] == t0 + 0.25
        for name in COLUMNS:
            assert np.array_equal(rest[name], whole[name][-len(rest.t) :]), name
