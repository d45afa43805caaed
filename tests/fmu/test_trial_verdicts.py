"""What follows for each method from the claim of an FMU that does not hold."""

from types import SimpleNamespace
from typing import Any

import pytest

from cosolve.fmu.claims import CLAIMS
from cosolve.fmu.inspection import Verdict
from cosolve.fmu.trial import Finding, _judged

METHODS = (
    Verdict("Jacobi", True, "any", ()),
    Verdict("SemiImplicit", True, "goes back", ("rollback",)),
    Verdict("Implicit", False, "cannot", ("rollback",)),
    Verdict("Adaptive steps", True, "any length", ()),
    Verdict("saved runs", True, "writes", ()),
)


def judged(**verdicts: str) -> dict[str, Verdict]:
    """The methods, where each claim holds but for these."""
    found = {claim.name: "holds" for claim in CLAIMS} | {name.replace("_", " "): v for name, v in verdicts.items()}
    findings = tuple(Finding(name, verdict, f"<{name}>") for name, verdict in found.items())
    seen: Any = SimpleNamespace(methods=METHODS)
    return {verdict.method: verdict for verdict in _judged(seen, findings)}


def told(**verdicts: str) -> dict[str, tuple[bool, str]]:
    """What changes for which method."""
    usual = judged()
    return {
        name: (verdict.possible, verdict.reason)
        for name, verdict in judged(**verdicts).items()
        if verdict != usual[name]
    }


def test_nothing_changes_where_all_claims_hold() -> None:
    found = judged()
    assert tuple(found.values())[:-1] == METHODS
    assert found["several runs or copies"] == Verdict(
        "several runs or copies", True, "a new instance does the same again"
    )


@pytest.mark.parametrize("bad", ["fails", "crashes", "hangs"])
def test_one_claim_spoils_what_relies_on_it(bad: str) -> None:
    words = "it does not do what it claims: "
    assert told(saves_its_state=bad) == {"SemiImplicit": (False, f"{words}<saves its state>")}
    assert told(writes_its_state=bad) == {"saved runs": (False, f"{words}<writes its state>")}
    assert told(takes_steps_of_any_length=bad) == {"Adaptive steps": (False, f"{words}<takes steps of any length>")}
    assert told(gives_derivatives=bad) == {
        "SemiImplicit": (True, "with difference quotients: the derivatives it gives are wrong")
    }
    for claim in ("runs next to itself", "runs again"):
        assert told(**{claim.replace(" ", "_"): bad}) == {
            "several runs or copies": (False, f"<{claim}>; give isolated=True")
        }
    found = judged(runs=bad)
    assert set(found) == {verdict.method for verdict in METHODS}
    assert {(verdict.possible, verdict.reason) for verdict in found.values()} == {(False, "it does not run: <runs>")}


def test_what_is_not_claimed_is_no_fault() -> None:
    assert told(gives_derivatives="not claimed", resets="fails") == {}
    assert told(runs_next_to_itself="not claimed") == {
        "several runs or copies": (
            True,
            "a new instance does the same again; one at a time, so copies need isolated=True",
        )
    }
