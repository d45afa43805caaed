"""Addresses of the machine code for what only some models have; it is compiled when the first such model is made."""

from __future__ import annotations

from functools import cache

import numpy as np

from cosolve.jit import c_address
from cosolve.multibody.model.arrays import CORRECTION_RATES, ELEMENT_LOADS, END_LOADS, Arrays


def linked(arrays: Arrays) -> Arrays:
    """The same arrays with `parts` for the elements, joint ends and corrections that they hold, valid in this process.

    >>> import cosolve as cs
    >>> model = cs.multibody.MultibodyModel()
    >>> model.body("bob", mass=1.0, inertia=[0.1, 0.1, 0.1])
    >>> linked(cs.multibody.MultibodySubsystem(model).arrays).parts                # nothing but a body: nothing to call
    array([0, 0, 0])
    """
    parts = np.zeros(3, dtype=np.int64)
    if len(arrays.elements):
        parts[ELEMENT_LOADS] = _element_loads()
    if len(arrays.ends):
        parts[END_LOADS] = _end_loads()
    if len(arrays.ends) or (arrays.ports[:, 3:] >= 0).any():
        parts[CORRECTION_RATES] = _correction_rates()
    return arrays._replace(parts=parts)


@cache
def _element_loads() -> int:
    from cosolve.multibody.equations.elements import ELEMENTS, element_loads

    return c_address(element_loads, ELEMENTS)


@cache
def _end_loads() -> int:
    from cosolve.multibody.equations.joint_ends import ENDS, end_loads

    return c_address(end_loads, ENDS)


@cache
def _correction_rates() -> int:
    from cosolve.multibody.equations.corrections import CORRECTIONS, correction_rates

    return c_address(correction_rates, CORRECTIONS)
