"""Other ways to cut the two masses, and several clients around one centre (Schmoll (2015), 2.3)."""

import numpy as np
import pytest
from examples.two_mass.model import SCHMOLL, split
from examples.two_mass.study import STATES
from scipy.linalg import block_diag

import cosolve as cs


def exact(t: np.ndarray) -> dict[str, np.ndarray]:
    return dict(zip(STATES, SCHMOLL.exact(t).T, strict=True))


@pytest.mark.sample(2)
@pytest.mark.covers("SC-22")
@pytest.mark.parametrize("p", range(4))
@pytest.mark.parametrize("kind", ["D/D", "F/F", "F/D"])
@pytest.mark.parametrize("family", [cs.Jacobi, cs.GaussSeidel], ids=["J", "GS"])
def test_they_converge_to_the_exact_solution(kind: str, p: int, family: type) -> None:
    """Order p + 1 against the matrix exponential for both symmetric splits (and the law evaluated by the engine)."""
    study = cs.analysis.convergence(
        split(kind, SCHMOLL),
        family(p),
        steps=(8e-7, 4e-7) if p == 0 else (2e-5, 1e-5),
        t_end=0.002 if p == 0 else 0.02,
        names=STATES,
        reference=exact,
        startup=cs.KnownHistory(lambda t: {name: v[0] for name, v in exact(np.array([t])).items()}),
    )
    (order,) = study.orders().values()
    assert order == pytest.approx(p + 1, abs=0.1)


@pytest.mark.covers("SC-22")
@pytest.mark.parametrize("kind", ["D/D", "F/F"])
def test_they_are_zero_stable(kind: str) -> None:
    """No feed-through in either subsystem: the spectral radius tends to 1 from below with the step, for all p."""
    for p in range(6):
        assert cs.analysis.spectral_radius(split(kind, SCHMOLL), cs.Jacobi(p), 1e-6) < 1


# -- one centre, three clients -----------------------------------------------------------------------------


def centre() -> cs.Linear:
    """A mass on a spring that three forces act on."""
    return cs.Linear(
        [[0, 1], [-500.0, -1.0]],
        [[0, 0, 0], [1.0, 1.0, 1.0]],
        np.eye(2),
        x0=[0.1, 0.0],
        inputs=["f1", "f2", "f3"],
        outputs=["x", "v"],
    )


def client_matrices(m: float, c: float, d: float) -> tuple[list, list, list, list]:
    """A mass that hangs on the centre by a spring and a damper and gives back their force."""
    return [[0, 1], [-c / m, -d / m]], [[0, 0], [c / m, d / m]], [[c, d]], [[-c, -d]]


CLIENTS = [(0.5, 300.0, 0.4), (0.8, 700.0, 0.9), (1.3, 200.0, 0.2)]
START = [[0.0, 1.0], [0.2, 0.0], [-0.1, -0.5]]


def client(k: int) -> cs.Linear:
    """The client of this number, from 1 on."""
    return cs.Linear(*client_matrices(*CLIENTS[k - 1]), x0=START[k - 1], inputs=["x", "v"], outputs=["f"])


def tree(clients: dict[str, cs.Subsystem] | None = None) -> cs.System:
    """The centre and three separate clients."""
    system = cs.System({"centre": centre(), **(clients or {f"client{k}": client(k) for k in (1, 2, 3)})})
    system.connect("centre.x", *(f"client{k}.x" for k in (1, 2, 3)))
    system.connect("centre.v", *(f"client{k}.v" for k in (1, 2, 3)))
    for k in (1, 2, 3):
        system.connect(f"client{k}.f", f"centre.f{k}")
    return system


def joined() -> cs.System:
    """The centre and one client with block-diagonal matrices."""
    A, B, C, D = zip(*(client_matrices(*parameters) for parameters in CLIENTS), strict=True)
    client = cs.Linear(
        block_diag(*A),
        np.vstack(B),
        block_diag(*C),
        np.vstack(D),
        x0=np.concatenate(START),
        inputs=["x", "v"],
        outputs=["f1", "f2", "f3"],
    )
    system = cs.System({"centre": centre(), "clients": client})
    system.connect("centre.x", "clients.x")
    system.connect("centre.v", "clients.v")
    for k in (1, 2, 3):
        system.connect(f"clients.f{k}", f"centre.f{k}")
    return system


@pytest.mark.sample(1)
@pytest.mark.covers("SC-26")
@pytest.mark.parametrize(
    "method",
    [cs.Jacobi(0), cs.Jacobi(2), cs.GaussSeidel(1), cs.GaussSeidel(3), cs.SemiImplicit(1)],
    ids=["J0", "J2", "GS1", "GS3", "SI1"],
)
def test_three_clients_equal_one_block_diagonal_client(method: cs.Method) -> None:
    """Clients see each other only through the centre, so cutting them apart changes nothing: 1e-12 of each signal."""
    apart = cs.simulate(tree(), t_end=2.0, method=method, step=1e-3)
    together = cs.simulate(joined(), t_end=2.0, method=method, step=1e-3)
    for one, other in [
        ("centre.x", "centre.x"),
        ("centre.v", "centre.v"),
        *((f"client{k}.f", f"clients.f{k}") for k in (1, 2, 3)),
    ]:
        size = np.abs(together[other]).max()
        assert np.abs(apart[one] - together[other]).max() <= 1e-12 * size


@pytest.mark.covers("SC-26")
def test_the_tree_runs_in_parallel_with_the_same_bits() -> None:
    """Four subsystems on three threads against one after the other."""
    serial = cs.simulate(tree(), t_end=0.5, method=cs.Jacobi(2), step=1e-3)
    threads = cs.simulate(tree(), t_end=0.5, method=cs.Jacobi(2), step=1e-3, workers=3)
    assert np.array_equal(serial.column("y"), threads.column("y"))
