"""Silent outcomes that are understood and listed, each with its reason; the campaign counts them apart.

A case that is known and does not fail any more is no harm: the entry goes when the last of its cases is mended.
"""

from __future__ import annotations

from campaigns.faults.cases import Case

#: a right-hand side is looked at in its first call only
_MISSHAPED = ("too short", "one number", "text", "texts", "dates", "masked", "empty", "too long")


def reason(case: Case) -> str | None:
    """Why this case may end as it does; None where it may not."""
    if case.place == "rhs" and case.deed in _MISSHAPED:
        return "the shape and type of a right-hand side are looked at in its first call only"
    if case.kind.startswith("jitted") and case.deed in _MISSHAPED:
        return "the compiled loop does not look at the length of what a jitted function returns"
    if case.deed == "masked":
        return "a masked array is taken as its data"
    if case.place == "save":
        return "a subsystem that goes back to another state than it was in crosses the step from there, in every trial"
    if case.place in ("jacobian", "law jacobian") and case.method.startswith("SemiImplicit"):
        return "the semi-implicit step does not compare its residual after the correction with what was predicted"
    return None
