"""Ringing in a run, seen in its own values: coupling variables that alternate from step to step around their trend.

A stiff coupling of first order dies out at once; signals of degree 1 give it a factor near -1 per step instead. The
run is stable then and wrong by the amplitude of what alternates. No motion that the steps resolve does that, so it can
be read off some macro points in a row, whatever the subsystems are: the last ones, and those after 40, 80, 160 ...
steps, since what alternates dies out, and leaves the run wrong. Second differences of a smooth signal keep their sign
for a while; those of one that alternates by `a` are `4 a` with another sign in every step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cosolve.basics.arrays import Matrix
from cosolve.interface import Plan

#: Macro points in a row that are looked at, and the fewest of them at the end of a run; steps until the first look.
_LAST, _FEWEST, _FIRST = 32, 12, 40

#: Amplitudes that count: of the values looked at, and of the largest in the run.
_SHARE, _OF_ALL = 0.02, 1e-6

#: Entries that are looked at, and rows of a chunk in which the largest is looked for, at most.
_WIDEST, _SAMPLES = 4096, 64


class Ringing:
    """Watches one run: `note` takes its steps, `sentence` says what alternates at its end."""

    def __init__(self, plan: Plan) -> None:
        self._every = max(1, -(-plan.n_z // _WIDEST))
        self._labels = plan.z_labels[:: self._every]
        self._rows: list[Matrix] = []
        self._count = 0
        self._largest = np.zeros(len(self._labels))
        self._seen, self._next, self._earlier = 0, _FIRST, ""  # steps so far, those of the next look, what it found

    @property
    def memory(self) -> dict[str, Any]:
        """What was seen so far."""
        looks = {"seen": self._seen, "next": self._next, "earlier": self._earlier}
        return {"rows": self._tail(), "largest": self._largest.copy(), **looks}

    @memory.setter
    def memory(self, saved: dict[str, Any]) -> None:
        self._rows, self._largest = [saved["rows"]], saved["largest"]
        self._count = len(saved["rows"])
        self._seen, self._next, self._earlier = saved["seen"], saved["next"], saved["earlier"]

    def note(self, z: Matrix) -> None:
        """Coupling variables after some more steps."""
        z = z[:, : self._every * len(self._labels) : self._every]
        while self._next <= self._seen + len(z):
            window = np.concatenate([self._tail(), z[: self._next - self._seen][-_LAST:]])[-_LAST:]
            found = "" if self._earlier else self._alternating(window)
            if found:
                self._earlier = (
                    f"after {self._next} macro steps {found}: the coupling rang, and left errors of that size"
                )
            self._next *= 2
        self._seen += len(z)
        self._rows.append(z[-_LAST:].copy())
        self._count += len(self._rows[-1])
        sizes = np.abs(z[:: -max(1, len(z) // _SAMPLES)]).max(axis=0, initial=0.0)
        np.maximum(self._largest, sizes, out=self._largest)
        if self._count > 8 * _LAST:
            self._rows = [self._tail()]
            self._count = len(self._rows[0])

    def _tail(self) -> Matrix:
        """The last rows."""
        return np.concatenate(self._rows)[-_LAST:] if self._rows else np.zeros((0, len(self._labels)))

    def sentence(self) -> str:
        """What alternates from step to step, or did so before, and by how much; empty where nothing does."""
        found = self._alternating(self._tail())
        if not found:
            return self._earlier
        return f"at the end of the run {found}: the coupling rings, or something switches in every step"

    def _alternating(self, z: Matrix) -> str:
        """What alternates in these rows; empty where nothing does."""
        if len(z) < _FEWEST or not len(self._labels):
            return ""
        with np.errstate(all="ignore"):
            bent = np.diff(z, 2, axis=0) / 4.0
            turns = (np.sign(bent[1:]) * np.sign(bent[:-1]) < 0.0).all(axis=0)
            amplitude = np.abs(bent[-2:]).min(axis=0)
            counts = amplitude > np.maximum(_SHARE * np.abs(z).max(axis=0), _OF_ALL * self._largest)
            shares = np.where(turns & counts, amplitude / np.abs(z).max(axis=0), 0.0)
        if not shares.any():
            return ""
        m = int(np.argmax(shares))
        trend = float((z[-2:, m].sum() + z[-3:-1, m].sum()) / 4.0)
        per_step = float((amplitude[m] / np.abs(bent[:2, m]).max()) ** (1.0 / max(len(bent) - 2, 1)))
        return (
            f"'{self._labels[m]}' alternates by {amplitude[m]:.2g} around {trend:.2g} in every step, with a factor of "
            f"-{per_step:.3g} per step"
        )
