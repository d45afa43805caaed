"""The second-order backward difference, also between steps of different lengths."""

from __future__ import annotations


def difference_weights(h: float, h_before: float | None) -> tuple[float, float, float]:
    """Weights of the values now, one and two steps ago in a derivative: BDF2, of the first step BDF1.

    >>> difference_weights(0.5, 0.5)
    (3.0, -4.0, 1.0)
    >>> difference_weights(0.5, None)
    (2.0, -2.0, 0.0)
    """
    if h_before is None:
        return 1.0 / h, -1.0 / h, 0.0
    r = h / h_before
    return (1.0 + 2.0 * r) / (1.0 + r) / h, -(1.0 + r) / h, r * r / (1.0 + r) / h
