"""Printed numbers as oracles: half a unit of the last printed digit."""

import pytest


def printed(text, extra=0.01):
    """`printed("4.85e-5")` accepts what rounds to it (and one percent of a digit for rounded ties)."""
    mantissa, _, exponent = text.lower().partition("e")
    digits = len(mantissa.partition(".")[2])
    return pytest.approx(float(text), abs=(0.5 + extra) * 10.0 ** (int(exponent or 0) - digits))
