"""Every limit of an argument from both sides: the last value that is taken, and the next one, which is refused."""

import math
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import cosolve as cs
import cosolve.mapping.mapping as field_mapping
from cosolve.basics.placement import refuse_bad_costs, refuse_bad_placement
from cosolve.corrector import Aitken, Anderson, Broyden, IqnIls, IqnImvj, LineSearch, NewtonKrylov, Relaxation, Secant
from cosolve.corrector.algebra.linear_solve import Factorised
from cosolve.corrector.relaxation import optimal_factor
from cosolve.fmu import archive, description, xml_text
from cosolve.fmu.options import structural_sizes
from cosolve.mapping import Mesh, global_radial, global_radial_basis, mortar, partition_of_unity, radial_basis
from cosolve.mapping.mapping import FieldMapping
from cosolve.mapping.rotation import rigid_part
from cosolve.method.named import as_method
from cosolve.process.network import host_and_port
from cosolve.stepsize.clock import UniformClock, refuse_bad_span
from cosolve.stepsize.sequence import OpenClock

FILE = Path("a.fmu")
TINY = 5e-324  # the smallest number above 0
BELOW, ABOVE = math.nextafter(1.0, 0.0), math.nextafter(1.0, 2.0)
LINE = np.linspace(0.0, 1.0, 12)
COARSE, FINE = Mesh.line(LINE), Mesh.line(np.linspace(0.0, 1.0, 5))


@dataclass(frozen=True)
class Limits:
    """`make` takes every one of `inside` and refuses every one of `outside` with an error that names `word`."""

    make: Any
    inside: tuple[Any, ...]
    outside: tuple[Any, ...]
    word: str


def positive(make: Any, word: str) -> Limits:
    return Limits(make, (TINY, 1.0, np.float32(1e-30), 3), (0.0, -TINY, 0, np.inf, np.nan, True, "1", None), word)


def not_negative(make: Any, word: str) -> Limits:
    return Limits(make, (0.0, 0, TINY), (-TINY, -1, np.inf, np.nan), word)


def nonzero(make: Any, word: str) -> Limits:
    return Limits(make, (TINY, -TINY), (0.0, -0.0, np.inf, np.nan), word)


def whole(make: Any, least: int, word: str) -> Limits:
    return Limits(make, (least, np.int32(least)), (least - 1, float(least), least + 0.5, True, str(least)), word)


def adaptive(**options: Any) -> Any:
    return cs.Adaptive(**{"q_min": 0.25, "q_max": 4.0, **options})


def structural(value: Any) -> Any:
    n = SimpleNamespace(causality="structuralParameter")
    return structural_sizes(SimpleNamespace(variables={"n": n}), {"n": value}, "a.fmu")


def folded(share: float) -> Any:
    """The first cell of a line is covered once by another line, and a second time by a layer above a part of it."""
    points = [[0.0, 0.0], [1.0, 0.0], [0.0, 1e-3], [share, 1e-3]]
    return mortar(Mesh(points, lines=[[0, 1], [2, 3]]), Mesh([[0.0, 0.0], [1.0, 0.0]], lines=[[0, 1]]))


LIMITS = {
    # step sizes
    "rtol of Adaptive": positive(lambda v: cs.Adaptive(rtol=v), "rtol"),
    "atol of Adaptive": not_negative(lambda v: cs.Adaptive(atol=v), "atol"),
    "first_step": Limits(lambda v: cs.Adaptive(first_step=v), (TINY, 1), (0.0, -TINY, np.inf, "1"), "first_step"),
    "min_step": Limits(lambda v: adaptive(min_step=v, max_step=1.0), (0.0, 1.0), (-TINY, ABOVE, np.nan), "min_step"),
    "max_step": Limits(lambda v: adaptive(max_step=v), (TINY, np.inf), (0.0, -1.0, np.nan, -np.inf), "max_step"),
    "q": Limits(lambda v: adaptive(q=v), (TINY, 1.0), (0.0, ABOVE, np.nan), "q"),
    "q_min": Limits(lambda v: adaptive(q_min=v), (TINY, BELOW), (0.0, 1.0, np.nan), "q_min"),
    "q_max": Limits(lambda v: adaptive(q_max=v), (ABOVE, 1e300), (1.0, np.inf), "q_max"),
    "step": Limits(lambda v: UniformClock(0.0, 1.0, v), (1.0000001e-15, 1.0, 7.0), (0.999e-15, 0.0, -1.0), "step"),
    "step late": Limits(lambda v: OpenClock(1.0, v), (2.3e-16, 1e-3), (1.1e-16, 0.0), "step"),
    "t_end": Limits(lambda v: refuse_bad_span(1.0, v), (ABOVE,), (1.0, BELOW, np.inf, np.nan), "t_end"),
    "step at t_end": Limits(lambda v: UniformClock(1.0, 3.0, v), (2.3e-14, 2.0), (2.1e-16, 1e-17), "step"),
    # methods
    "degree": whole(lambda v: cs.Jacobi(degree=v), 0, "degree"),
    "degree of bdf": Limits(lambda v: cs.SemiImplicit(v, signal="bdf"), (0, 2), (3, -1), "degree"),
    "degree in a name": Limits(lambda v: as_method(f"jacobi:{v}"), ("0", "9"), ("-1", "", "1e1", "²"), "method"),
    "predictor": whole(lambda v: cs.Implicit(predictor=v), 0, "predictor"),
    "tol": positive(lambda v: cs.Implicit(tol=v), "tol"),
    "atol": not_negative(lambda v: cs.Implicit(atol=v), "atol"),
    "atol of one": not_negative(lambda v: cs.Implicit(atol={"a.u": 1.0, "b.u": v}), "atol"),
    "max_iterations": whole(lambda v: cs.Implicit(max_iterations=v), 1, "max_iterations"),
    "increment of SemiImplicit": positive(lambda v: cs.SemiImplicit(increment=v), "increment"),
    "increment of DynamicStatic": Limits(
        lambda v: cs.DynamicStatic("C", increment=v), (TINY, BELOW), (0.0, 1.0, -TINY, np.nan), "increment"
    ),
    "beta": not_negative(lambda v: cs.Baumgarte(beta=v, gamma=1.0), "beta"),
    "gamma": not_negative(lambda v: cs.Baumgarte(beta=1.0, gamma=v), "gamma"),
    "a": not_negative(lambda v: cs.WeightedMultipliers(a=v), "a must"),
    "b": not_negative(lambda v: cs.WeightedMultipliers(b=v), "b must"),
    "relaxation": Limits(
        lambda v: cs.StabilisedIndex2(relaxation=v), (TINY, 1.0, 1), (0.0, ABOVE, -1.0, np.nan), "relaxation"
    ),
    "order of BDF": Limits(lambda v: cs.DynamicStatic("C", order=v), (1, 5), (0, 6, 2.0, True), "order"),
    "steps of BDF": Limits(
        lambda v: cs.DynamicStatic("C", min_step=v, max_step=1.0), (0.0, 1.0), (-TINY, ABOVE, np.nan), "min_step"
    ),
    # correctors
    "alpha": nonzero(Relaxation, "alpha"),
    "initial of Aitken": nonzero(lambda v: Aitken(initial=v), "initial"),
    "initial of Broyden": nonzero(lambda v: Broyden(initial=v), "initial"),
    "initial of IqnIls": nonzero(lambda v: IqnIls(initial=v), "initial"),
    "initial of Secant": nonzero(lambda v: Secant(initial=v), "initial"),
    "mixing": nonzero(lambda v: Anderson(mixing=v), "mixing"),
    "depth": whole(lambda v: Anderson(depth=v), 1, "depth"),
    "reuse": whole(lambda v: IqnIls(reuse=v), 0, "reuse"),
    "columns of IqnIls": whole(lambda v: IqnIls(columns=v), 1, "columns"),
    "columns of IqnImvj": whole(lambda v: IqnImvj(columns=v), 1, "columns"),
    "rank of IqnImvj": whole(lambda v: IqnImvj(rank=v), 1, "rank"),
    "rank of Broyden": whole(lambda v: Broyden(rank=v), 1, "rank"),
    "filter_tol": Limits(
        lambda v: IqnIls(filter_tol=v), (1e-14, BELOW), (math.nextafter(1e-14, 0.0), 1.0, np.nan), "filter_tol"
    ),
    "rtol of NewtonKrylov": Limits(lambda v: NewtonKrylov(rtol=v), (TINY, BELOW), (0.0, 1.0, np.nan), "rtol"),
    "vectors": whole(lambda v: NewtonKrylov(vectors=v), 1, "vectors"),
    "increment of NewtonKrylov": positive(lambda v: NewtonKrylov(increment=v), "increment"),
    "halvings": whole(lambda v: LineSearch(cs.Newton(), halvings=v), 1, "halvings"),
    "size of Broyden's matrix": Limits(
        lambda v: Broyden(form="direct").start_run([f"u[{i}]" for i in range(v)]), (2000,), (2001,), "2000"
    ),
    "sides of the imaginary axis": Limits(
        lambda v: optimal_factor([1.0 + 1.0j, v + 1.0j]), (1e-300, 1.0), (0.0, -1e-300), "both sides"
    ),
    # mapping
    "support": Limits(
        lambda v: global_radial.radial_function("wendland_c2", v, None), (TINY, 1e300), (0.0, -TINY, np.nan), "support"
    ),
    "shape": Limits(
        lambda v: global_radial.radial_function("multiquadric", None, v), (TINY, 1e300), (0.0, -TINY, np.nan), "shape"
    ),
    "per_cluster": whole(lambda v: partition_of_unity(COARSE, FINE, per_cluster=v), 5, "per_cluster"),
    "overlap": Limits(
        lambda v: partition_of_unity(COARSE, FINE, overlap=v), (TINY, 2), (0.0, 2.0000001, np.nan), "overlap"
    ),
    "neighbours": whole(lambda v: radial_basis(COARSE, FINE, neighbours=v), 2, "neighbours"),
    "workers": whole(lambda v: radial_basis(COARSE, FINE, workers=v), 1, "workers"),
    "points of a line": Limits(lambda v: Mesh.line(LINE[:v]), (2,), (1,), "two points"),
    "coordinates": Limits(lambda v: Mesh(np.eye(4)[:, :v]), (1, 3), (4,), "points"),
    "numbers of points": Limits(
        lambda v: radial_basis(COARSE, FINE).restricted(source=[v]), (0, 11), (-1, 12), "0 to 11"
    ),
    # FMUs
    "whole numbers of XML": Limits(lambda v: xml_text.as_whole(v, "it", 0, 9), ("0", " 9 "), ("-1", "10"), "0 to 9"),
    "size of an array": Limits(
        lambda v: description.refuse_endless("it", v), ((10**4, 10**4), ()), ((10**4, 10**4 + 1),), "numbers"
    ),
    "structural parameter": whole(structural, 1, "at least 1"),
    # processes
    "port of a hub": Limits(
        lambda v: host_and_port(f"a:{v}", "--hub"), (0, 65535), (65536, -1, "1.0", "²"), "host:port"
    ),
    "rank": Limits(lambda v: refuse_bad_placement(["a"], {"a": v}, 3), (0, 2), (-1, 3, 1.0, True), "rank"),
    "cost": positive(lambda v: refuse_bad_costs(["a"], {"a": v}), "cost"),
    "timeout of Isolated": Limits(
        lambda v: cs.remote.Isolated("a:b", timeout=v),
        (None, TINY, 3),
        (0.0, -TINY, np.inf, np.nan, True, "1"),
        "timeout",
    ),
    # limits of what is large: the memory is not used
    "bytes of an FMU": Limits(
        lambda v: archive._refuse_growth(FILE, v, v), (archive.MAX_BYTES,), (archive.MAX_BYTES + 1,), "4.0 GiB"
    ),
    "growth of an FMU": Limits(
        lambda v: archive._refuse_growth(FILE, v, 2 * 1024**2), (400 * 1024**2,), (400 * 1024**2 + 1,), "200 times"
    ),
    "growth of a small FMU": Limits(
        lambda v: archive._refuse_growth(FILE, v, 1), (archive.FREE_BYTES,), (archive.FREE_BYTES + 1,), "200 times"
    ),
    "entries of a dense matrix": Limits(
        lambda v: FieldMapping("it", csr_array((v, 5000)))._refuse_dense(2, "it"), (2500,), (2501,), "5002 x 10000"
    ),
    # what is nearly something else
    "a rotation": Limits(
        lambda v: rigid_part([[1.0, 0.0, 0.0]], np.diag([1.0, 1.0, 1.0 + v])), (4.9e-10,), (5.1e-10, -2.0), "rotation"
    ),
    "a singular Jacobian": Limits(
        lambda v: Factorised(np.array([[1.0, 1.0], [1.0, 1.0 + v]]), ["a", "b"]), (6e-14,), (2e-14, 0.0), "determine"
    ),
    "layers of a mesh": Limits(folded, (0.049,), (0.051,), "layers"),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_is_where_it_is_stated(name: str) -> None:
    limits = LIMITS[name]
    for value in limits.inside:
        limits.make(value)
    for value in limits.outside:
        with pytest.raises((cs.errors.SetupError, cs.errors.SingularInterfaceError)) as caught:
            limits.make(value)
        assert limits.word in str(caught.value), value


@pytest.mark.parametrize(
    ("module", "limit", "make", "most", "sentence"),
    [
        (global_radial, "LARGEST", lambda a, b: global_radial_basis(a, b, support=2.0), 12, "more than 11"),
        (field_mapping, "_LARGEST_DENSE", mortar, 5 * 12, "5 x 12 numbers"),
    ],
    ids=["points of the source", "numbers of an operator"],
)
def test_the_largest_matrix_is_made_and_no_larger_one(
    module: Any, limit: str, make: Any, most: int, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, limit, most)
    assert make(COARSE, FINE).operator().shape == (5, 12)
    monkeypatch.setattr(module, limit, most - 1)
    with pytest.raises(cs.errors.SetupError, match=sentence):
        make(COARSE, FINE).operator()
