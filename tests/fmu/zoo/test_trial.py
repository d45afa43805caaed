"""`cosolve inspect --try` on the zoo: the claim that does not hold is found, the others are not blamed."""

import json
from dataclasses import replace

import pytest
from tests.fmu.build import build
from tests.fmu.catalogue import MODELS, without
from tests.fmu.zoo.members import animal
from tests.fmu.zoo.pairs import pair
from typer.testing import CliRunner

import cosolve as cs
from cosolve.cli import app
from cosolve.fmu.claims import CLAIMS

BAD = ("fails", "crashes", "hangs")
STATES = ("canGetAndSetFMUState", "canSerializeFMUState")
DERIVATIVES = ("providesDirectionalDerivatives", "providesAdjointDerivatives")
GOES_ON, PARAMETERS = "advances when a rollback is possible", "takes its parameters"


def tried(name, fmi=2, **options):
    return cs.fmi.try_fmu(animal(name, fmi), step=0.05, instances=24, **options)


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """What one test learns of an FMU must not reach another."""
    from cosolve.fmu.findings import facts

    monkeypatch.setattr(facts, "_known", {})


@pytest.mark.sample(1)
@pytest.mark.parametrize(("fmi", "kind"), [(2, "co-simulation"), (3, "co-simulation"), (2, "model exchange")])
def test_one_that_keeps_its_word(fmi, kind):
    trial = tried("plain", fmi, kind=kind)
    assert trial.good
    assert [finding.claim for finding in trial.findings] == [claim.name for claim in CLAIMS]
    assert trial["saves its state"].verdict == "holds"
    assert trial["gives derivatives"].verdict == "holds"


CASES = [  # animal, what does not hold, words
    ("reset_freezes", "resets", "runs do not rely on it"),
    ("reset_crashes", "resets", "SIGSEGV"),
    ("goes_back", GOES_ON, "runs never tell it so"),
    ("ignores_parameter", PARAMETERS, "reads back as 1"),
    ("state_half", "saves its state", "after going back"),
    ("serial_lies", "writes its state", "instead of"),
    ("wrong_sign", "gives derivatives", "by difference quotients"),
    ("deaf", "follows its inputs inside a step", "runs hold its inputs"),
    ("outputs_in_step", "shows its outputs at the start", "until the first step"),
    ("shared", "runs next to itself", "disturbs the first"),
    ("random", "runs next to itself", "disturbs the first"),  # alone, its library is loaded anew and draws the same
    ("chatty", "is quiet", "bytes to standard output"),
    ("leaks", "frees its memory", "kB and"),
]


@pytest.mark.sample(4)
@pytest.mark.parametrize(("name", "claim", "words"), CASES, ids=[case[0] for case in CASES])
def test_the_claim_that_does_not_hold(name, claim, words):
    trial = tried(name)
    assert trial[claim].verdict in BAD
    assert words in trial[claim].text
    assert not trial.good


@pytest.mark.slow
@pytest.mark.parametrize("name", ["reset_freezes", "ignores_parameter", "serial_lies", "wrong_sign"])
def test_nothing_else_is_blamed(name):
    """One claim does not hold, and only that is said."""
    trial = tried(name)
    blamed = {finding.claim for finding in trial.findings if finding.verdict in BAD}
    assert blamed == {claim for animal_, claim, _ in CASES if animal_ == name}


def test_a_crash_costs_one_claim():
    """The one at which it happens, and no other."""
    blamed = {finding.claim for finding in tried("reset_crashes").findings if finding.verdict in BAD}
    assert blamed == {"resets"}


@pytest.mark.parametrize("fmi", [2, 3])
def test_one_instance_at_a_time_is_no_fault(fmi):
    """Each claim is tried with a new instance, after the instances of earlier claims are freed."""
    trial = tried("once", fmi)
    assert trial.good
    assert trial["runs next to itself"].verdict == "not claimed"
    assert all(finding.verdict in ("holds", "not claimed") for finding in trial.findings)
    possible = {verdict.method: verdict for verdict in trial.methods}
    assert possible["SemiImplicit"].possible
    assert possible["several runs or copies"].possible
    assert "copies need isolated=True" in possible["several runs or copies"].reason


def test_one_whose_second_instance_differs():
    """It is never next to itself, so that only its second run tells."""
    trial = tried("remembers")
    assert trial["runs next to itself"].verdict == "not claimed"
    assert trial["runs again"].verdict == "fails"
    last = trial.methods[-1]
    assert (last.method, last.possible) == ("several runs or copies", False)
    assert "a second instance differs: 'y' is" in last.reason
    assert last.reason.endswith("give isolated=True")


def test_outputs_that_come_after_initialisation_are_no_fault():
    """Runs read them there."""
    finding = tried("outputs_late")["shows its outputs at the start"]
    assert finding.verdict == "holds"
    assert "only after initialisation" in finding.text


def test_one_that_dies_when_it_is_freed_runs_nowhere():
    trial = tried("free_aborts")
    assert trial["runs"].verdict == "crashes"
    assert "SIGABRT" in trial["runs"].text
    assert not any(verdict.possible for verdict in trial.methods)


def test_a_run_relies_on_what_held(tmp_path):
    """Written to a file or remembered: the FMU is then one without rollback, and the methods say so."""
    trial = tried("state_half")
    possible = {verdict.method: verdict.possible for verdict in trial.methods}
    assert possible["Jacobi"]
    assert not possible["SemiImplicit"]
    with pytest.warns(
        cs.errors.FmuWarning, match=r"'.*state_half.fmu' is used as if it did not claim that it saves its state"
    ):
        remembered = cs.load_fmu(animal("state_half", 2))
    assert "rollback" not in cs.capabilities(remembered)
    with pytest.raises(cs.errors.CapabilityError, match="SemiImplicit needs rollback"):
        cs.simulate(pair(remembered, 2), t_end=0.1, method=cs.SemiImplicit(1), step=0.05)
    trial.write(tmp_path / "trial.json")
    from cosolve.fmu.findings import facts

    facts._known.clear()
    with pytest.warns(cs.errors.FmuWarning, match="saves its state"):
        read = cs.load_fmu(animal("state_half", 2), trial=tmp_path / "trial.json")
    assert "rollback" not in cs.capabilities(read)
    with pytest.raises(cs.errors.SetupError, match="is the trial of another FMU"):
        cs.load_fmu(animal("plain", 2), trial=tmp_path / "trial.json")
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(cs.errors.SetupError, match="is not the trial of an FMU"):
        cs.load_fmu(animal("plain", 2), trial=tmp_path / "other.json")


def test_from_the_command_line(tmp_path):
    out = tmp_path / "trial.json"
    done = CliRunner().invoke(app, ["inspect", "--try", str(animal("state_half", 2)), "--json", "--out", str(out)])
    assert done.exit_code == 1  # a claim fails
    found = json.loads(done.output)
    assert {f["claim"]: f["verdict"] for f in found["findings"]}["saves its state"] == "fails"
    assert json.loads(out.read_text()).items() <= found.items()
    shown = CliRunner().invoke(app, ["inspect", str(animal("plain", 2)), "--out", str(out)])
    assert shown.exit_code == 2
    assert "--out keeps what --try found" in shown.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": "both"}, "there is no kind 'both' of FMU; there are 'co-simulation', 'model-exchange'"),
        ({"timeout": 0}, "timeout is a number of seconds above 0"),
        ({"instances": -1}, "instances is a whole number from 0"),
        ({"step": -1.0}, "step is a number above 0"),
    ],
)
def test_bad_options(options, words):
    with pytest.raises(cs.errors.SetupError, match=words):
        cs.fmi.try_fmu(animal("plain", 2), **options)


HOLDS, NOT_CLAIMED = "holds", "not claimed"
SAVES, WRITES, DERIVES = "saves its state", "writes its state", "gives derivatives"


@pytest.mark.parametrize(
    ("left_out", "verdicts"),
    [
        pytest.param((), {SAVES: HOLDS, WRITES: HOLDS, DERIVES: HOLDS}, marks=pytest.mark.slow),
        (STATES, {SAVES: NOT_CLAIMED, WRITES: NOT_CLAIMED, DERIVES: "cannot tell"}),
        pytest.param(STATES[1:], {SAVES: HOLDS, WRITES: NOT_CLAIMED, DERIVES: HOLDS}, marks=pytest.mark.slow),
        (DERIVATIVES, {SAVES: HOLDS, DERIVES: NOT_CLAIMED}),
        pytest.param(DERIVATIVES[:1], {DERIVES: HOLDS}, marks=pytest.mark.slow),  # rows do as well as columns
    ],
    ids=["everything", "no states", "states that cannot be written", "no derivatives", "adjoint derivatives"],
)
def test_what_is_not_claimed_is_not_blamed(left_out, verdicts):
    """And what cannot be tried is neither held nor broken."""
    trial = cs.fmi.try_fmu(build("mass_link", replace(MODELS["mass_link"], flags=without(*left_out)), 3), step=0.05)
    assert trial.good
    assert {claim: trial[claim].verdict for claim in verdicts} == verdicts
    if verdicts[DERIVES] == "cannot tell":
        assert trial[DERIVES].text.startswith("it does not show its states or cannot repeat a step")
