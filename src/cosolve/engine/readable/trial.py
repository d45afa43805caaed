"""Trial crossings of one macro step for different end values of the coupling variables.

The polynomial through `(T_{N+1}, z)` and the past values serves predictor, perturbed and corrected runs alike
(docs/theory.md, "Signals"). `Trial` repeats the step by rollback and differences it: it is the interface problem that
methods correct.
"""

from __future__ import annotations

from concurrent.futures import Future

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.products import combine
from cosolve.corrector.algebra.linear_solve import SPARSE_FROM, InterfaceMatrix
from cosolve.engine.readable.crew import Crew
from cosolve.engine.readable.events import EndedEarly
from cosolve.method.base import JacobianSource
from cosolve.method.step import Window
from cosolve.signal import History
from cosolve.subsystem.base import has_capability


class Trial:
    """One macro step that can be crossed again and again from the same states."""

    def __init__(
        self,
        crew: Crew,
        history: History,
        window: Window,
        degree: int,
        source: JacobianSource = "auto",
        increment: float = 1e-5,
        size: Vector | None = None,
    ) -> None:
        self.crew, self.window = crew, window
        self.plan = crew.plan  # whose residual counts; constraints are solved in several combinations
        self.base, self.weight = history.interpolation(degree, window.H)
        self.source, self.increment = source, increment
        self.size = crew.plan.z_nominal if size is None else size
        self._states = crew.save()
        self._fresh = True
        self.z = self.y = np.zeros(0)  # of the last crossing
        self._responses: list[Matrix] | None = None  # there

    def coefficients(self, z: Vector) -> Matrix:
        """Coefficients of the signal that ends in `z`."""
        return self.base + self.weight[:, np.newaxis] * z

    def rewind(self) -> None:
        """All subsystems back to the start of the step."""
        self.crew.restore(self._states)

    def rewind_one(self, i: int) -> None:
        """Subsystem `i` back to the start of the step."""
        self.crew.restore_one(i, self._states)

    def response(self, i: int, z: Vector, y: Vector, source: JacobianSource, increment: float | None = None) -> Matrix:
        """`d y_i / d z` at `z` by another way than the one that corrections go."""
        usual = self.source, self.increment
        self.source, self.increment = source, self.increment if increment is None else increment
        try:
            return self._response(i, z, y, self.coefficients(z))
        finally:
            self.source, self.increment = usual

    def stand_at(self, z: Vector, y: Vector) -> None:
        """The last crossing ended in `z` and gave the outputs `y`."""
        self._fresh, self._responses = False, None
        self.z, self.y = z, y

    def run(self, z: Vector) -> Vector:
        """All outputs at the end of the step when the coupling variables end in `z`."""
        if not self._fresh:
            self.rewind()
        self.stand_at(z, self.crew.sweep(self.window, self.coefficients(z)))
        return self.y

    def jacobian(self) -> InterfaceMatrix:
        """`G = dr/dz + dr/dy dy/dz` at the values of the last crossing.

        Exact where a subsystem gives its Jacobian; otherwise one perturbed run per coupling variable that the
        subsystem reads, with increment `eps * max(size, |z|)` (Lu (2015), 2.2.6); `size`
        is the nominal value, or the largest magnitude so far where the method keeps count of it, since a small
        increment around a zero crossing would drown in rounding.
        """
        plan, z, y = self.plan, self.z, self.y
        by_z, by_y = plan.partials(z, y)
        if self._responses is None:
            self._responses = self._all_responses(z, y)
        response = self._responses
        if plan.n_z < SPARSE_FROM:
            G, dr_dy = np.zeros((plan.n_z, plan.n_z)), np.zeros((plan.n_z, plan.n_y))
            for matrix, entries in ((G, by_z), (dr_dy, by_y)):
                for rows, columns, values in entries:
                    if len(values):
                        np.add.at(matrix, (rows, columns), values)
            for i, dy_dz in enumerate(response):
                if len(dy_dz):  # added up in the order of compiled loops
                    G[:, plan.reads(i)] += combine(dr_dy[:, plan.y_slices[i]], dy_dz)
            return G
        from scipy.sparse import coo_array

        rows, columns, values = (np.concatenate([e[k] for e in by_y]) for k in range(3))
        dr_dy_sparse = coo_array((values, (rows, columns)), shape=(plan.n_z, plan.n_y)).tocsr()
        parts = [
            (np.repeat(np.arange(s.start, s.stop), len(r)), np.tile(r, s.stop - s.start), J.ravel())
            for s, r, J in zip(plan.y_slices, (plan.reads(i) for i in range(plan.n_subsystems)), response, strict=True)
        ]
        rows, columns, values = (np.concatenate([p[k] for p in parts]) for k in range(3))
        dy_dz_sparse = coo_array((values, (rows, columns)), shape=(plan.n_y, plan.n_z)).tocsr()
        rows, columns, values = (np.concatenate([e[k] for e in by_z]) for k in range(3))
        G_sparse = coo_array((values, (rows, columns)), shape=(plan.n_z, plan.n_z)).tocsc()
        return (G_sparse + dr_dy_sparse @ dy_dz_sparse).tocsc()

    def _all_responses(self, z: Vector, y: Vector) -> list[Matrix]:
        """The response of every subsystem; side by side where the crew has threads, each with its own signals."""
        coefficients, crew = self.coefficients(z), self.crew
        jobs: dict[int, Future[Matrix]] = {}
        if crew.pool is not None:
            jobs = {i: crew.pool.submit(self._response, i, z, y, coefficients.copy()) for i in crew.beside}
        return [
            jobs[i].result() if i in jobs else self._response(i, z, y, coefficients)
            for i in range(self.plan.n_subsystems)
        ]

    def _response(self, i: int, z: Vector, y: Vector, coefficients: Matrix) -> Matrix:
        """`d y_i(T_{N+1}) / d z(T_{N+1})` for the coupling variables that subsystem `i` reads.

        `coefficients` (those of `z`) are changed column by column and put back: copies would cost `n_z` per run.
        """
        crew, plan = self.crew, self.crew.plan
        subsystem, reads = plan.subsystems[i], plan.reads(i)
        if self.source == "auto" and has_capability(subsystem, "jacobian"):
            crew.restore_one(i, self._states)
            by_input = crew.jacobian(i, self.window, coefficients, self.weight)
            return plan.by_variables(i, by_input)
        y_i = y[plan.y_slices[i]]
        noise = 0.0 if crew.replays(i) else subsystem.noise
        relative = max(self.increment, noise**0.5)
        if crew.is_cut(i, self.window) and len(reads):  # differences are taken over the step in one piece
            crew.restore_one(i, self._states)
            y_i = crew.advance(i, self.window, coefficients, whole=True)
        columns = np.empty((len(y_i), len(reads)))
        for k, m in enumerate(reads):
            shifted = z[m] + relative * (max(self.size[m], abs(z[m])) or 1.0)
            unshifted = coefficients[:, m].copy()
            try:
                moved = self._perturbed(i, m, shifted, coefficients)
            except EndedEarly:  # the increment moved an event into the step: the other side is free of it
                shifted = 2.0 * z[m] - shifted
                moved = self._perturbed(i, m, shifted, coefficients)
            finally:
                coefficients[:, m] = unshifted
            columns[:, k] = (moved - y_i) / (shifted - z[m])
        return columns

    def _perturbed(self, i: int, m: int, shifted: float, coefficients: Matrix) -> Vector:
        """The outputs of subsystem `i` when coupling variable `m` ends in another value."""
        coefficients[:, m] = self.base[:, m] + self.weight * shifted
        self.crew.restore_one(i, self._states)
        return self.crew.advance(i, self.window, coefficients, replay=True, whole=True)
