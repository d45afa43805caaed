"""Random right-hand sides and laws, written as users write them: lists, arrays, numpy, math, branches, helpers."""

from __future__ import annotations

import linecache
import math
import random

import numpy as np

import cosolve as cs

_ONE = (
    *(
        "np.sin({})",
        "np.cos({})",
        "np.tanh({})",
        "np.arctan({})",
        "np.exp(-abs({}))",
        "np.sqrt(abs({}))",
        "np.sign({})",
    ),
    *(
        "math.sin({})",
        "math.tanh({})",
        "math.atan({})",
        "math.exp(-abs({}))",
        "math.sqrt(abs({}))",
        "np.log1p(abs({}))",
    ),
    *("np.sinh(np.tanh({}))", "abs({})", "-({})", "np.abs({})", "np.expm1(-np.abs({}))", "float({})", "helper({})"),
    *("np.interp({}, [-1.0, 0.0, 0.5, 2.0], [0.0, 0.3, -0.2, 1.0])", "np.clip({}, -1.0, 1.5)", "np.floor({})"),
)
_TWO = (
    *("{} + {}", "{} - {}", "{} * {}", "{} / (1.0 + abs({}))", "max({}, {})", "min({}, {})", "np.maximum({}, {})"),
    *("np.hypot({}, {})", "np.arctan2({}, {})", "np.fmin({}, {})", "np.where({} > {}, k, 0.5)", "mixed({}, {})"),
    *("({} if {} > 0.2 else 0.1)", "({}) % (2.0 + abs({}))", "(0.3 if {} < {} else -0.3)"),
)
_POWERS = ("({})**2", "np.tanh({})**3", "abs({})**1.5", "np.square({})")
_SUMS = ("np.sum(x)", "np.mean(x * w)", "x.sum()", "(x * x).sum()", "sum(x)", "np.max(x)", "float(np.prod(np.tanh(x)))")

#: Products that numpy leaves to BLAS, which adds up in an order of its own.
PRODUCTS = ("(A @ x)[{}]", "np.dot(w, x)", "w @ np.sin(x)")


_HELPERS = """
def helper(v):
    return 0.5 * v if v > 0.1 else v

def mixed(a, b=1.0):
    return a * 0.25 + 0.75 * b

"""


class Writer:
    """Writes one model; everything follows from `seed`."""

    def __init__(self, seed: int, products: bool = True) -> None:
        self.random = random.Random(seed)
        self.nx, self.nu = self.random.randint(1, 9), 1
        self.products = products and self.random.random() < 0.5
        pick = self.random
        self.space = {
            "np": np,
            "math": math,
            "k": pick.uniform(0.5, 2.0),
            "c": [pick.uniform(-1, 1) for _ in range(3)],
            "p": {"d": pick.uniform(0.1, 1.0)},
            "w": np.array([pick.uniform(-1, 1) for _ in range(self.nx)]),
            "A": np.array([[pick.uniform(-1, 1) for _ in range(self.nx)] for _ in range(self.nx)]),
        }

    def leaf(self, names: list[str]) -> str:
        known = ["k", "c[0]", "c[2]", "p['d']", f"{self.random.uniform(-2, 2):.3f}", "w[0]"]
        return self.random.choice(names * 2 + known)

    def expression(self, names: list[str], depth: int) -> str:
        pick = self.random.random()
        if depth == 0 or pick < 0.15:
            return self.leaf(names)
        inner = lambda: f"({self.expression(names, depth - 1)})"  # noqa: E731
        if pick < 0.45:
            return self.random.choice(_ONE).format(inner())
        if pick < 0.55:
            return self.random.choice(_POWERS).format(inner())
        if pick < 0.65 and "x[0]" in names:
            if self.products and self.random.random() < 0.5:
                return self.random.choice(PRODUCTS).format(self.random.randrange(self.nx))
            return self.random.choice(_SUMS)
        return self.random.choice(_TWO).format(inner(), inner())

    def rhs(self) -> str:
        names = [f"x[{k}]" for k in range(self.nx)] + ["u[0]", "t"]
        rates = [
            f"-{self.random.uniform(0.3, 2):.2f} * x[{k}] + np.tanh({self.expression(names, 3)})"
            for k in range(self.nx)
        ]
        style = self.random.randrange(5)
        if style == 0:
            return f"    return [{', '.join(rates)}]"
        if style == 1:
            return f"    return np.array([{', '.join(rates)}])"
        if style == 2:
            lines = [f"    dx[{k}] = {rate}" for k, rate in enumerate(rates)]
            return "\n".join(["    dx = np.zeros_like(x)", *lines, "    return dx"])
        if style == 3:
            lines = [f"    found.append({rate})" for rate in rates]
            return "\n".join(["    found = []", *lines, "    return tuple(found)"])
        vector = self.random.choice(
            ["np.sin(x)", "np.tanh(x * w)", "x**2 / (1.0 + x**2)", "np.where(x > 0, x, 0.5 * x)"]
        )
        return f"    y = -x + {vector}\n    y[0] += np.tanh({self.expression(names, 3)})\n    return y"

    def law(self) -> str:
        first, second = self.expression(["a", "b"], 3), self.expression(["a", "b"], 2)
        return f"    return np.tanh({first}) + 0.3 * ({second}) / (4.0 + b * b)"

    def made(self, name: str, arguments: str, body: str) -> object:
        text = f"{_HELPERS}def {name}({arguments}):\n{body}\n"
        file = f"<{name} {id(self)}>"
        linecache.cache[file] = len(text), None, text.splitlines(True), file
        exec(compile(text, file, "exec"), self.space)
        return self.space[name]


def pair(seed: int, products: bool = True) -> cs.System:
    """Two random models, a law of the outputs of both that drives one, a connection to the other."""
    parts, written = {}, []
    for name, number in (("one", 2 * seed), ("two", 2 * seed + 1)):
        writer = Writer(number, products)
        written.append(writer)
        rhs = writer.made("rhs", "t, x, u", writer.rhs())
        integrator = writer.random.choice(["auto", "dopri5", "ode2", "ode4", "ode5"])
        step = 0.004 if integrator.startswith("ode") else None
        x0 = [writer.random.uniform(-1, 1) for _ in range(writer.nx)]
        output = lambda t, x, u: x[0]  # noqa: E731
        parts[name] = cs.Ode(rhs, output, x0=x0, inputs=["u"], outputs=["y"], integrator=integrator, internal_step=step)
    system = cs.System(parts)
    system.law("one.u", written[0].made("law", "a, b", written[0].law()), of=["one.y", "two.y"])
    system.connect("one.y", "two.u")
    return system


METHODS = [cs.Jacobi(1), cs.SemiImplicit(1), cs.Implicit(1), cs.GaussSeidel(2), cs.Jacobi(0)]


def run(seed: int, compiled: bool, products: bool = True) -> cs.Result:
    """A run of the pair of this number, under one of the methods."""
    with np.errstate(all="ignore"):
        method = METHODS[seed % len(METHODS)]
        return cs.simulate(pair(seed, products), t_end=1.0, method=method, step=0.01, compiled=compiled)


def difference(seed: int, products: bool = True) -> tuple[float, int]:
    """The largest difference between both engines relative to the largest value, and how many steps were compiled."""
    python, machine = run(seed, False, products), run(seed, True, products)
    worst = 0.0
    for name in ("one.y", "two.y"):
        a, b = python[name], machine[name]
        worst = max(worst, float(np.abs(a - b).max() / max(1e-300, np.abs(a).max())))
    return worst, machine.stats.compiled_steps
