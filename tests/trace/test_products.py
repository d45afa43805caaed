"""Products of matrices have the bits of numpy, whose order of adding up depends on sizes and layouts."""

import numpy as np
import pytest

from cosolve.trace import Module, trace


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 16, 33])
def test_products_have_the_bits_of_numpy(n) -> None:
    rng = np.random.default_rng(n)
    A, w, B = rng.normal(size=(n, n)), rng.normal(size=n), rng.normal(size=(n, 3))
    in_columns, rest = np.asfortranarray(A), np.zeros(n - 1)
    functions = [
        *(lambda t, x: A @ x, lambda t, x: A.dot(x), lambda t, x: np.dot(A, x), lambda t, x: A.T @ x),
        *(lambda t, x: in_columns @ x, lambda t, x: x @ A, lambda t, x: (A @ A) @ x, lambda t, x: A @ (B @ (B.T @ x))),
        *(lambda t, x: A[:, ::2] @ x[::2], lambda t, x: np.outer(x, w) @ x, lambda t, x: A[:, :1] @ x[:1]),
        *(lambda t, x: np.append(rest, w @ x), lambda t, x: np.append(rest, np.dot(x, x))),
        *(lambda t, x: np.append(rest, np.linalg.norm(x)), lambda t, x: np.append(rest, x[::2] @ w[::2])),
        *(
            lambda t, x: np.append(rest, np.sum(x * w)),
            lambda t, x: np.mean(A, axis=1) * x,
            lambda t, x: (A * x).sum(axis=0),
        ),
    ]
    for function in functions:
        module = Module({"f": trace(function, [("t", None), ("x", n)], n)})
        for _ in range(10):
            x = rng.normal(size=n)
            assert module.call("f", 0.0, x, [0.0], n).tobytes() == function(0.0, x).tobytes()


def test_what_is_not_known_of_products_is_refused() -> None:
    reversed_ = trace(lambda t, x: np.append(0.0, x[::-1] @ x), [("t", None), ("x", 2)], 2)
    assert "it multiplies a reversed array" in reversed_
