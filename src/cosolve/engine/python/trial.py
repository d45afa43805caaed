"""Trial subsystem steps in one macro step for different end values of the coupling variables.

The polynomial through `(T_{N+1}, z)` and the past values serves predictor, perturbed and corrected runs alike
(docs/theory.md, "Signals"). `Trial` repeats the step by rollback and differences it: it is the interface problem that
methods correct.
"""

from __future__ import annotations

from concurrent.futures import Future

import numpy as np

from cosolve.basics.arrays import Matrix, Vector
from cosolve.basics.products import combine
from cosolve.basics.scale import sizes_at
from cosolve.corrector.algebra.linear_solve import SPARSE_FROM, InterfaceMatrix
from cosolve.engine.python.events import EndedEarly
from cosolve.engine.python.subsystem_caller import SubsystemCaller
from cosolve.method.base import JacobianSource
from cosolve.method.step import Window
from cosolve.signal import History


class Trial:
    """One macro step that can be advanced again and again from the same states."""

    def __init__(
        self,
        caller: SubsystemCaller,
        history: History,
        window: Window,
        degree: int,
        source: JacobianSource = "auto",
        increment: float = 1e-5,
        sizes: tuple[Vector, Vector] | None = None,
    ) -> None:
        self.caller, self.window = caller, window
        self.plan = caller.plan  # whose residual counts; constraints are solved in several combinations
        self.use_signals(*history.interpolation(degree, window.H))
        self.source, self.increment = source, increment
        self._sizes = sizes  # of coupling variables and outputs, as far as they were seen
        self.states = caller.save()  #: at the start of the step
        self._fresh = True
        self.z = self.y = np.zeros(0)  # of the last subsystem step
        self._responses: list[Matrix] | None = None  # there
        self._of: tuple[Vector, Vector] | None = None

    def use_signals(self, base: Matrix, weight: Vector) -> None:
        """Signals are `base + outer(weight, z)` for end values `z`."""
        self.base, self.weight, self._column = base, weight, weight[:, np.newaxis]

    def coefficients(self, z: Vector) -> Matrix:
        """Coefficients of the signal that ends in `z`."""
        return self.base + self._column * z

    def rollback(self) -> None:
        """All subsystems back to the start of the step."""
        self.caller.restore(self.states)

    def rewind_one(self, i: int) -> None:
        """Subsystem `i` back to the start of the step."""
        self.caller.restore_one(i, self.states)

    def response(self, i: int, z: Vector, y: Vector, source: JacobianSource, increment: float | None = None) -> Matrix:
        """`d y_i / d z` at `z` by another way than the one that corrections go."""
        usual, self._of = (self.source, self.increment), None
        self.source, self.increment = source, self.increment if increment is None else increment
        try:
            return self._response(i, z, y, self.coefficients(z))
        finally:
            self.source, self.increment = usual

    def stand_at(self, z: Vector, y: Vector) -> None:
        """The last subsystem step ended in `z` and gave the outputs `y`."""
        self._fresh, self._responses = False, None
        self.z, self.y = z, y

    def run(self, z: Vector) -> Vector:
        """All outputs at the end of the step when the coupling variables end in `z`."""
        if not self._fresh:
            self.rollback()
        self.stand_at(z, self.caller.sweep(self.window, self.coefficients(z)))
        return self.y

    def jacobian(self) -> InterfaceMatrix:
        """`G = dr/dz + dr/dy dy/dz` at the values of the last subsystem step.

        Exact where a subsystem gives its Jacobian; otherwise one perturbed run per coupling variable that the
        subsystem reads, with increment `eps * max(size, |z|)` (Lu (2015), 2.2.6); `size`
        is the nominal value, or the largest magnitude so far (`basics/scale.py`), since a small increment around a
        change of sign would drown in rounding.
        """
        plan, z, y = self.plan, self.z, self.y
        by_z, by_y = plan.partials(z, y, self._sizes)
        if self._responses is None:
            self._responses = self._all_responses(z, y)
        response = self._responses
        if plan.n_z < SPARSE_FROM:
            explicit = plan.explicit  # each residual is of one variable then
            G = plan.identity.copy() if explicit else np.zeros((plan.n_z, plan.n_z))
            dr_dy = np.zeros((plan.n_z, plan.n_y))
            for matrix, entries in ((dr_dy, by_y),) if explicit else ((G, by_z), (dr_dy, by_y)):
                for rows, columns, values in entries:
                    if len(values) > 4:
                        np.add.at(matrix, (rows, columns), values)
                    else:
                        for row, column, value in zip(rows.tolist(), columns.tolist(), values.tolist(), strict=True):
                            matrix[row, column] += value
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
        """The response of every subsystem; side by side where the caller has threads, each with its own signals."""
        coefficients, caller, self._of = self.coefficients(z), self.caller, None
        jobs: dict[int, Future[Matrix]] = {}
        if caller.pool is not None:
            jobs = {i: caller.pool.submit(self._response, i, z, y, coefficients.copy()) for i in caller.beside}
        responses = []
        for i in range(self.plan.n_subsystems):
            responses.append(jobs[i].result() if i in jobs else self._response(i, z, y, coefficients))
        return responses

    def _response(self, i: int, z: Vector, y: Vector, coefficients: Matrix) -> Matrix:
        """`d y_i(T_{N+1}) / d z(T_{N+1})` for the coupling variables that subsystem `i` reads.

        `coefficients` (those of `z`) are changed column by column and put back: copies would cost `n_z` per run.
        """
        caller, plan = self.caller, self.caller.plan
        subsystem = plan.subsystems[i]
        if self.source == "auto" and caller.gives_jacobian[i]:
            caller.restore_one(i, self.states)
            by_input = caller.jacobian(i, self.window, coefficients, self.weight)
            return plan.by_variables(i, by_input)
        y_i, reads = y[plan.y_slices[i]], plan.reads(i)
        noise = 0.0 if caller.replays(i) else subsystem.noise
        relative = max(self.increment, noise**0.5)
        if caller.is_cut(i, self.window) and len(reads):  # differences are taken over the step in one piece
            caller.restore_one(i, self.states)
            y_i = caller.advance(i, self.window, coefficients, whole=True)
        columns, size = np.empty((len(y_i), len(reads))), self._sizes_of(z)
        for k, m in enumerate(reads):
            shifted = z[m] + relative * size[m]
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

    def _sizes_of(self, z: Vector) -> Vector:
        """What increments are relative to; once per Jacobian."""
        known = self._of
        if known is None or known[0] is not z:
            seen = None if self._sizes is None else self._sizes[0]
            given = seen if seen is not None else np.where(self.plan.z_open, 0.0, self.plan.z_nominal)
            known = self._of = z, np.maximum(sizes_at(z, given, seen), np.abs(z))
        return known[1]

    def _perturbed(self, i: int, m: int, shifted: float, coefficients: Matrix) -> Vector:
        """The outputs of subsystem `i` when coupling variable `m` ends in another value."""
        coefficients[:, m] = self.base[:, m] + self.weight * shifted
        self.caller.restore_one(i, self.states)
        return self.caller.advance(i, self.window, coefficients, replay=True, whole=True)
