"""Notes of macro steps turned into instructions: what is not read is dropped, registers are handed out."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cosolve.engine.blocks.program import Integers, Notes, Term, Value


@dataclass
class Registers:
    """Rows of the register file: banks of live values, outputs (to be checked), observed values, temporaries, ones."""

    width: int
    turns: int
    n_outputs: int
    n_observed: int
    temps: int = 0

    @property
    def n_live(self) -> int:
        """Rows of all banks."""
        return self.width * self.turns

    @property
    def first_output(self) -> int:
        """First row of the outputs."""
        return self.n_live

    @property
    def first_observed(self) -> int:
        """First row of what is observed."""
        return self.n_live + self.n_outputs

    @property
    def first_temp(self) -> int:
        """First row of temporaries."""
        return self.first_observed + self.n_observed

    @property
    def size(self) -> int:
        """All rows; the last one holds ones."""
        return self.first_temp + self.temps + 1


@dataclass
class Code:
    """Programs one after the other."""

    registers: Registers
    instructions: list[tuple[int, int, int]] = field(default_factory=list)  # register, first and last term
    terms: list[tuple[int, int]] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    _ones: list[int] = field(default_factory=list)  # terms that read the row of ones, whose place is known at the end

    def add(self, notes: Notes, phase: int, ones: int, *, observe: bool, outputs: bool) -> int:
        """Add the program of a step in this phase of the banks; its number. `ones` is the coefficient row of ones."""
        regs = self.registers
        sums = list(notes.sums)
        tails = ([(notes.outputs, regs.first_output)] if outputs else []) + (
            [(notes.observed, regs.first_observed)] if observe else []
        )
        needed: set[Value] = set(notes.live)
        needed |= {value for values, _ in tails for value in values if value is not None}
        kept: list[tuple[tuple[str, int, int], list[Term]]] = []
        for into, terms in reversed(sums):
            if into in needed:
                needed |= {value for _, value in terms}
                kept.append((into, terms))
        kept.reverse()
        place = _Places(regs, phase)
        last_use: dict[Value, int] = {}
        for k, (_, terms) in enumerate(kept):
            last_use.update(dict.fromkeys((value for _, value in terms), k))
        for values, _ in tails:
            last_use.update(dict.fromkeys(values, len(kept)))
        for k, (into, terms) in enumerate(kept):
            rows = [(row, place.of(value)) for row, value in terms]
            for value in {value for _, value in terms}:
                if last_use[value] == k:
                    place.free(value)
            self._emit(place.of(into), rows)
        for values, first in tails:
            for m, found in enumerate(values):
                # a value that is zero in all variants stays the zero that is there
                if found is not None:
                    self._emit(first + m, [(ones, place.of(found))])
        self.starts.append(len(self.instructions))
        return len(self.starts) - 2

    def _emit(self, into: int, terms: list[tuple[int, int]]) -> None:
        begin = len(self.terms)
        self._ones += [begin + k for k, (_, register) in enumerate(terms) if register < 0]
        self.terms += terms
        self.instructions.append((into, begin, len(self.terms)))

    def arrays(self, row_bytes: int) -> tuple[Integers, Integers, Integers]:
        """Instructions, terms (as distances in bytes) and starts of programs."""
        terms = np.array(self.terms, dtype=np.int64).reshape(-1, 2)
        terms[self._ones, 1] = self.registers.size - 1
        instructions = np.array(self.instructions, dtype=np.int64).reshape(-1, 3)
        instructions[:, 0] *= row_bytes
        return instructions, terms * row_bytes, np.array(self.starts, dtype=np.int64)


class _Places:
    """Register rows of values in one program; temporaries are used again after their last use."""

    def __init__(self, registers: Registers, phase: int) -> None:
        self._registers, self._phase = registers, phase
        self._held: dict[Value, int] = {}
        self._spare: list[int] = []

    def of(self, value: Value) -> int:
        """The row of a value; -1 for the row of ones."""
        assert value is not None
        kind, number, row = value
        if kind == "one":
            return -1
        regs = self._registers
        if kind == "live":
            return (self._phase + number) % regs.turns * regs.width + row
        if value not in self._held:
            if self._spare:
                self._held[value] = self._spare.pop()
            else:
                self._held[value] = len(self._held)
                regs.temps = max(regs.temps, self._held[value] + 1)
        return regs.first_temp + self._held[value]

    def free(self, value: Value) -> None:
        """Its last use is over."""
        if value in self._held:
            self._spare.append(self._held.pop(value))
