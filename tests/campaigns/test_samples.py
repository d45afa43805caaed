"""A small, fixed sample of every campaign: the whole ones are commands of their own (docs/validation/campaigns.md)."""

import sys
from pathlib import Path

import pytest
from campaigns.faults.campaign import sample, summed_up
from campaigns.faults.cases import Case, every
from campaigns.faults.deeds import DEEDS, Deed
from campaigns.faults.judge import GOOD, NOT_TRIED, judged
from campaigns.faults.kinds import FMU_FAILURES
from campaigns.fuzz import AMOUNTS, TARGETS, verdict
from campaigns.watched import verdicts
from tests.campaigns.judges import judge
from tests.processes import ROOT, run

from campaigns import concurrency, hostile, kills, load, page, protocol


def test_the_faults_are_many_and_distinct():
    cases = every()
    assert len(cases) == len(set(cases)) > 1000
    assert len({case.kind for case in cases}) > 20
    assert len({case.method for case in cases}) > 15
    assert {case.compiled for case in cases} == {True, False}
    assert {case.deed for case in cases} <= set(DEEDS) | set(FMU_FAILURES)


@pytest.mark.parametrize("case", sample(every()), ids=str)
def test_forced_failures_end_well(case):
    found, text = judged(case, 0)
    assert found in (*GOOD, NOT_TRIED), f"{found}: {text}"


def test_a_silent_fault_is_called_silent():
    """The judge can say no: here a law gives ten times the force from some step on, which nothing can notice."""
    found, text = judged(Case("join", "law", "ten times", "Jacobi(1)", False), 0)
    assert found == "SILENT"
    assert "off" in text


def test_deeds_happen_when_they_should():
    once, always = Deed("nan", at=2, once=True), Deed("nan", at=2)
    assert [str(once(1.0)) for _ in range(3)] == ["1.0", "[nan]", "1.0"]
    assert [str(always(1.0)) for _ in range(3)] == ["1.0", "[nan]", "[nan]"]


def test_crashes_do_not_stop_a_campaign():
    found = dict(verdicts(judge, ["crashes", "goes well"], 60.0))
    assert found["crashes"][0] == "CRASH"
    assert found["goes well"] == ("right", "goes well")


def test_one_silent_case_spoils_the_outcome():
    case = Case("ode", "rhs", "too short", "Jacobi(1)", False)
    assert summed_up([(case, ("sentence", "..."))]).good
    assert not summed_up([(case, ("SILENT", "finished, 1 off"))]).good


@pytest.mark.parametrize("name", AMOUNTS)
def test_spoilt_files_and_odd_calls(tmp_path, name):
    """Every one is read, or refused in one sentence; both happen."""
    target = TARGETS[name](tmp_path)
    found = [verdict(lambda n=n: target(n, tmp_path)) for n in range(30 if AMOUNTS[name] <= 3000 else 120)]
    bad = [(n, *one) for n, one in enumerate(found) if one[0] not in ("read", "refused")]
    assert not bad
    assert {one[0] for one in found} == {"read", "refused"}


def test_hostile_archives():
    outcome = hostile.run(quick=True)
    assert outcome.good, outcome.notes
    assert outcome.rows[-1][1] >= 20


def test_load_and_threads():
    for campaign in (load, concurrency):
        outcome = campaign.run(quick=True)
        assert outcome.good, outcome.table()


@pytest.mark.skipif(not protocol.available(), reason="the models need SPIN, which is not installed")
@pytest.mark.parametrize(
    ("model", "size", "rule"), [("exchange", "STEPS=2", "FLAG_LATE"), ("channel", "ROUNDS=1", "NO_NAP")]
)
def test_the_protocols_hold_and_the_check_can_fail(model, size, rule):
    assert protocol.check(model, [size], optimised=False).complaint == ""
    assert protocol.check(model, [size, rule], optimised=False).complaint == "invalid end state"


def test_figures_go_to_their_place(tmp_path):
    file = tmp_path / "page.md"
    file.write_text("# Page\n\n<!-- soak -->\nold\n<!-- /soak -->\nmore\n")
    page.write("soak", "make it", page.Outcome(["what"], [["steps"]], ["a note"]), file)
    text = file.read_text()
    assert "old" not in text
    assert text.endswith("- a note\n<!-- /soak -->\nmore\n")
    assert "| steps |" in text


def test_the_page_has_a_place_for_every_campaign():
    from campaigns.__main__ import NAMES

    text = page.PAGE.read_text(encoding="utf-8")
    assert all(f"<!-- {name} -->" in text and f"<!-- /{name} -->" in text for name in NAMES)
    assert all((Path(page.__file__).parent / f"{name}.py").exists() or name in ("faults", "protocol") for name in NAMES)


@pytest.mark.slow  # looks for what is left behind, which files of tests beside it would seem to be
@pytest.mark.covers("PX-18")
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux tells who started whom")
def test_killed_participants_leave_nothing():
    """In a process of its own: the campaign forks, which one that has loaded jax (for another test) must not do."""
    run([sys.executable, "-m", "campaigns", "kills", "--quick"], cwd=ROOT, check=True)


def test_kills_are_the_same_for_a_seed_and_of_all_kinds():
    found = kills.cases(100, compiled=True)
    assert found == kills.cases(100, compiled=True) != kills.cases(100, compiled=True, seed=1)
    assert {case.victim for case in found} == {"A", "B", "hub", "rank 0", "rank 1"}
    assert {case.number for case in found} == set(kills.SIGNALS)
    assert 0 < sum(case.window == 0 for case in found) < 50
