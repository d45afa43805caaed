"""Interface problems that are wrong in themselves get one sentence that names rows, entries and subsystems."""

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array, eye_array

import cosolve as cs
from cosolve.corrector.algebra.linear_solve import Factorised


class Field(cs.Subsystem):
    """`force = 1 - u / 2` on `n` points; from t = 0.2 on entry `bad` is `value`."""

    def __init__(self, n=4, jacobian=None, bad=None, value=np.nan):
        self.n, self.bad, self.value = n, bad, value
        self.inputs, self.outputs = (("u", n),), (("force", n),)
        if jacobian is not None:
            self.jacobian = lambda t0, t1, u, weight: jacobian()

    def start(self, t0):
        return np.zeros(self.n)

    def advance(self, t0, t1, u):
        y = 1.0 - 0.5 * u.end
        if self.bad is not None and t0 > 0.15:
            y[self.bad] = self.value
        return y

    def save(self):
        return None

    def restore(self, state):
        pass


def ring(wing, air):
    system = cs.System({"wing": wing, "air": air})
    system.connect("wing.force", "air.u")
    system.connect("air.force", "wing.u")
    return system


def equations(function, n=1):
    system = cs.System({"wing": Field(n), "air": Field(n)})
    system.equations({"p": "wing.u", "q": "air.u"}, function, of=["wing.force", "air.force"])
    return system


def run(system, corrector=None):
    method = cs.Implicit(degree=0, tol=1e-9, corrector=cs.Newton() if corrector is None else corrector)
    return cs.simulate(system, t_end=0.5, method=method, step=0.1)


def with_nan():
    J = -0.5 * np.eye(4)
    J[2, 1] = np.nan
    return J


@pytest.mark.parametrize(
    ("jacobian", "words"),
    [
        (lambda: np.eye(3), ["a Jacobian with shape (3, 3)"]),
        (lambda: np.ones(4), ["a Jacobian with shape (4,)"]),
        (lambda: np.ones((4, 1)), ["a Jacobian with shape (4, 1)"]),
        (lambda: eye_array(3).tocsr(), ["shape (3, 3)"]),
        (lambda: None, ["a NoneType that is no real matrix"]),
        (lambda: [[1.0, 2.0], [3.0]], ["a list that is no real matrix"]),
        (lambda: 1j * np.eye(4), ["a Jacobian of complex128"]),
        (with_nan, ["nan for output 'force[2]' by input 'u[1]'"]),
    ],
)
def test_a_wrong_jacobian_is_described(jacobian, words):
    with pytest.raises(cs.errors.SubsystemError) as caught:
        run(ring(Field(jacobian=jacobian), Field()))
    for word in [*words, "'wing' gave", "expected finite numbers of shape (4, 4) = (outputs, inputs)"]:
        assert word in str(caught.value)
    assert caught.value.subsystem == "wing"


def test_a_sparse_jacobian_of_a_subsystem_is_as_good_as_a_dense_one():
    sparse = run(ring(Field(jacobian=lambda: csr_array(-0.5 * np.eye(4))), Field()))
    dense = run(ring(Field(jacobian=lambda: -0.5 * np.eye(4)), Field()))
    assert np.array_equal(sparse["wing.force"], dense["wing.force"])
    assert sparse["wing.force"][-1] == pytest.approx(np.full(4, 2 / 3))  # y = 1 - y / 2


def test_a_sparse_jacobian_too_large_to_unfold_is_refused():
    n = 6000
    with pytest.raises(cs.errors.SubsystemError, match=r"too large for that; .* IqnIls"):
        run(ring(Field(n, jacobian=lambda: eye_array(n).tocsr()), Field(n, jacobian=lambda: eye_array(n).tocsr())))


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (lambda p, q, a, b: (p + q,), "returned 1 numbers, expected 2"),
        (lambda p, q, a, b: p + q, "returned 1 numbers, expected 2"),
        (lambda p, q, a, b: (p + q, a, b), "returned 3 numbers, expected 2"),
        (lambda p, q, a, b: None, "returned None, expected values"),
    ],
)
def test_the_number_of_residuals_must_be_that_of_the_unknowns(function, what):
    with pytest.raises(
        cs.errors.SubsystemError, match=rf"the equations for wing\.u, air\.u {what} for the ports \['p', 'q'\]"
    ):
        run(equations(function))


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (lambda p, q, a, b: (p - b, p - b), r"the equations do not determine '[pq]\[0\]', '[pq]\[0\]'"),
        (lambda p, q, a, b: (p - b, 0 * q), r"the equation of 'q\[0\]' does not react to any coupling variable"),
        (lambda p, q, a, b: (p - 1, 2 * p - 2), r"no equation reacts to the coupling variable 'q\[0\]'"),
    ],
)
def test_a_singular_interface_names_its_rows(function, what):
    with pytest.raises(cs.errors.SingularInterfaceError, match=what):
        run(equations(function))


@pytest.mark.parametrize("n", [10, 150])  # dense and sparse
def test_one_singular_row_of_a_field_is_named(n):
    def holed(p, q, a, b):
        row = np.array(p - b)
        row[7] = 0.0
        return row, q - a

    with pytest.raises(cs.errors.SingularInterfaceError, match=r"the equation of 'p\[7\]' does not react"):
        run(equations(holed, n))


def large(entries):
    """A unit matrix of 5000 rows with some entries changed, and its labels."""
    n = 5000
    matrix = eye_array(n).tolil()
    for (row, column), value in entries.items():
        matrix[row, column] = value
    return matrix.tocsc(), [f"z[{i}]" for i in range(n)]


def test_structurally_singular_rows_of_a_large_interface_are_named():
    """Rows 40 and 41 have one unknown between them; no values can mend that."""
    with pytest.raises(
        cs.errors.SingularInterfaceError, match=r"structural rank 4999\), among them those of 'z\[4[01]\]'"
    ):
        Factorised(*large({(41, 41): 0.0, (41, 40): 2.0, (42, 41): 1.0}))


def test_numerically_singular_rows_of_a_large_interface_are_named():
    with pytest.raises(cs.errors.SingularInterfaceError, match=r"do not determine 'z\[4[01]\]', 'z\[4[01]\]';"):
        Factorised(*large({(41, 40): 1.0, (40, 41): 1.0}))


@pytest.mark.parametrize("sparse", [False, True])
def test_a_nan_in_the_interface_jacobian_is_located(sparse):
    G = np.eye(3)
    G[2, 1] = np.nan
    with pytest.raises(cs.errors.SingularInterfaceError, match="a NaN or an infinity in the equation of 'c' by 'b'"):
        Factorised(coo_array(G).tocsc() if sparse else G, ["a", "b", "c"])


@pytest.mark.parametrize("corrector", [cs.Newton(), cs.IqnIls()], ids=repr)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_bad_entry_of_a_field_is_named_with_its_subsystem(corrector, value):
    with pytest.raises(
        cs.errors.NonFiniteError, match=rf"'wing' returned {value} for output 'force\[17\]' .* t = 0\.2;"
    ) as error:
        run(ring(Field(30, bad=17, value=value), Field(30)), corrector)
    assert error.value.subsystem == "wing"
    assert error.value.result.t[-1] == pytest.approx(0.2)  # the good steps are kept


class Through(cs.Subsystem):
    """Hands its input on at once."""

    inputs, outputs = ("u",), ("y",)

    def start(self, t0):
        return 0.0

    def advance(self, t0, t1, u):
        return u.end[0]

    def save(self):
        return None

    def restore(self, state):
        pass


@pytest.mark.parametrize("corrector", [cs.Newton(), cs.IqnIls(), cs.Aitken(), cs.Relaxation(0.5)], ids=str)
def test_any_value_would_do(corrector):
    """A loop of gain 1, and an equation that asks for nothing from t = 0.3 on: any value would do."""
    loop = cs.System({"a": Through()})
    loop.connect("a.y", "a.u")
    clock = cs.Static(lambda t, u: t, inputs=[], outputs=["t"])
    undetermined = cs.System({"clock": clock, "a": Through()})
    undetermined.equations({"f": {"a.u": 1}}, lambda f, y, t: y - t if t < 0.25 else 0.0 * f, of=["a.y", "clock.t"])
    for system, time in ((loop, "0"), (undetermined, "0.2")):
        with pytest.raises(
            cs.errors.SingularInterfaceError, match=rf"does not react .*\(in the macro step from t = {time}\)"
        ):
            cs.simulate(system, t_end=1.0, step=0.1, method=cs.Implicit(0, corrector=corrector))
