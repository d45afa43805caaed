"""Ten FMUs in a chain, each coupled to both neighbours: nested loops under every family of methods."""

import numpy as np
import pytest
from scipy.linalg import expm
from tests.fmu.build import fmu

import cosolve as cs

N, M, C, D, CK, DK = 10, 1.0, 10.0, 0.1, 100.0, 1.0


def chain(name: str = "mass_link", fmi: int = 2) -> cs.System:
    """Masses between springs; the two ends are tied to walls that stand still."""
    parameters = {"m": M, "c": C, "d": D, "ck": CK, "dk": DK}
    masses = {f"m{i}": cs.load_fmu(fmu(name, fmi), parameters=parameters, start={"x": float(i == 2)}) for i in range(N)}
    system = cs.System(masses)
    for i in range(N):
        for side, other in (("left", i - 1), ("right", i + 1)):
            for what in "xv":
                if 0 <= other < N:
                    system.connect(f"m{other}.{what}", f"m{i}.{side}_{what}")
                else:
                    system.set(f"m{i}.{side}_{what}", 0.0)
    return system


def exact(t: float) -> np.ndarray:
    """The monolithic chain."""
    K = (C + 2 * CK) * np.eye(N) - CK * (np.eye(N, k=1) + np.eye(N, k=-1))
    R = (D + 2 * DK) * np.eye(N) - DK * (np.eye(N, k=1) + np.eye(N, k=-1))
    A = np.block([[np.zeros((N, N)), np.eye(N)], [-K / M, -R / M]])
    start = np.zeros(2 * N)
    start[2] = 1.0
    return (expm(A * t) @ start)[:N]


FAMILIES = {
    "Jacobi": cs.Jacobi(2),
    "GaussSeidel": cs.GaussSeidel(2),
    "SemiImplicit": cs.SemiImplicit(2),
    "Implicit": cs.Implicit(2),
    "Implicit, Aitken": cs.Implicit(2, corrector=cs.Aitken()),
    "Implicit, IQN-ILS": cs.Implicit(2, corrector=cs.IqnIls()),
    "Implicit, Anderson": cs.Implicit(2, corrector=cs.Anderson()),
    "Implicit, Jacobian-free": cs.Implicit(2, corrector=cs.NewtonKrylov()),
}


def ends(system: cs.System, method: cs.Method, step: float) -> np.ndarray:
    result = cs.simulate(system, t_end=0.5, method=method, step=step)
    return np.array([result[f"m{i}.x"][-1] for i in range(N)])


@pytest.mark.sample(2)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_runs_the_chain(family):
    """Degree 2: third order against the monolithic chain; FMI 2.0 and 3.0 give the same."""
    method, reference = FAMILIES[family], exact(0.5)
    coarse, fine = ends(chain(), method, 0.02), ends(chain(), method, 0.01)
    errors = [float(np.abs(found - reference).max()) for found in (coarse, fine)]
    assert errors[1] < 1e-3
    assert np.log2(errors[0] / errors[1]) == pytest.approx(3.0, abs=0.6)
    assert np.abs(ends(chain(fmi=3), method, 0.02) - coarse).max() < 1e-9  # iterated to a tolerance


@pytest.mark.parametrize("fmi", [2, 3])
def test_adaptive_steps(fmi):
    result = cs.simulate(chain(fmi=fmi), t_end=0.5, method=cs.SemiImplicit(2), step=cs.Adaptive(rtol=1e-4))
    found = np.array([result[f"m{i}.x"][-1] for i in range(N)])
    assert np.abs(found - exact(0.5)).max() < 1e-3


@pytest.mark.parametrize("fmi", [2, 3])
@pytest.mark.parametrize("method", [cs.SemiImplicit(1), cs.Implicit(1)], ids=lambda m: m.label)
def test_without_rollback_implicit_methods_are_refused(fmi, method):
    """By name, with what is missing and with what would do; which then runs."""
    masses = {f"m{i}": cs.load_fmu(fmu("mass_no_rollback" if i == 3 else "mass_force", fmi)) for i in range(N)}
    system = cs.System(masses)
    for i in range(N):
        system.law(f"m{i}.f", lambda x: -x, of=f"m{(i + 1) % N}.x")
    with pytest.raises(cs.errors.CapabilityError) as refusal:
        cs.simulate(system, t_end=0.01, method=method, step=1e-3)
    text = str(refusal.value)
    assert "'m3' (CoSimulationFmu)" in text
    assert "'m2'" not in text
    assert "rollback" in text
    assert "use Jacobi or GaussSeidel" in text
    for instead in (cs.Jacobi(1), cs.GaussSeidel(1)):
        assert len(cs.simulate(system, t_end=0.01, method=instead, step=1e-3).t) == 11
