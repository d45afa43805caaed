"""PF-4: integrators started anew in every macro step."""

from __future__ import annotations

from typing import Any

from harness import Bench, Sample, Unavailable, ratio
from problems import pendulum as p

from report import Section, distance, judge, table, timed

RTOL = 1e-6
Jobs = dict[str, tuple[str, dict[str, Any]]]


def run(bench: Bench) -> list[Section]:
    """Smooth, stiff, constrained."""
    section = Section(
        "PF-4: restarts, planar double pendulum of rods, 10 ms steps to t = 1 s, rtol 1e-6, each step twice"
    )
    try:
        ask = bench.worker("scipy_restart").ask
        right = {D: ask(case="reference", D=D)["answer"] for D in (0.0, p.STIFF)}
    except Unavailable as error:
        section.text = [f"No reference: {error}"]
        return [section]
    _smooth(bench, section, right[0.0])
    _stiff(bench, section, right[p.STIFF])
    _constrained(bench, section, right[0.0])
    return [section]


def _rows(samples: dict[str, Sample], right: list[float], first: str) -> list[str]:
    """A table with errors; ratios to one of the rows."""
    rows = []
    for label, sample in samples.items():
        off = f"{distance(sample.answer, right):.1e}" if sample.runs else ""
        rows.append([label, *timed(sample), off, str(ratio(sample, samples[first]) or "")])
    return table(["integrator", "per integration", "range", "error at 1 s", "x the first"], rows)


def _smooth(bench: Bench, section: Section, right: list[float]) -> None:
    scipy: Jobs = {
        f"`solve_ivp` RK45, rtol {rtol:g}": ("scipy_restart", {"case": "restarted", "method": "RK45", "rtol": rtol})
        for rtol in (1e-4, 1e-5, 1e-6)
    }
    jobs: Jobs = {
        "**cosolve dopri5, compiled loop**": ("cosolve_restart", {"case": "compiled", "kind": "dopri5", "rtol": RTOL}),
        "cosolve dopri5, called from Python": ("cosolve_restart", {"case": "called", "kind": "dopri5", "rtol": RTOL}),
        **scipy,
        "scipy `ode` dopri5": ("scipy_restart", {"case": "restarted", "method": "dopri5", "rtol": RTOL}),
        "diffrax Dopri5 in `lax.scan`": (
            "diffrax_restart",
            {"case": "restarted", "solver": "Dopri5", "rtol": RTOL, "scan": True},
        ),
        "diffrax Dopri5 per call": ("diffrax_restart", {"case": "restarted", "solver": "Dopri5", "rtol": RTOL}),
        "casadi cvodes": ("casadi_restart", {"case": "restarted", "plugin": "cvodes", "rtol": RTOL}),
        "numbalsoda LSODA": ("numbalsoda_restart", {"case": "restarted", "rtol": RTOL}),
    }
    samples = bench.interleave(jobs)
    first = "**cosolve dopri5, compiled loop**"
    ours = samples[first]
    section.text += ["### Smooth", "", *_rows(samples, right, first)]
    found = None
    if ours.runs:  # the fastest setting that is as accurate as ours
        error = distance(ours.answer, right)
        good = [samples[n] for n in scipy if samples[n].runs and distance(samples[n].answer, right) <= 1.5 * error]
        if good:
            found = ratio(min(good, key=lambda s: s.seconds()), ours)
    miss = (
        "0.6 us of a call are the loop around it (profiles/README.md, 1): without its reference counts 1.67 us "
        "instead of 2.27, which is enough; stages as fresh arrays per internal step are the next thing to go"
    )
    verdict = judge(
        "PF-4", "`solve_ivp` RK45 / our dopri5, equal error", found, ">= 40", lambda r: r >= 40.0, miss, ours.missing
    )
    section.verdicts.append(verdict)


def _stiff(bench: Bench, section: Section, right: list[float]) -> None:
    offered = bench.worker("cosolve_restart").ask(case="solvers")["solvers"]
    known = {"auto", "dopri5", "RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA", "cvode"}
    native = [name for name in offered if name not in known and not name.startswith("ode")]  # stiff ones of our own
    stiff = {"rtol": RTOL, "D": p.STIFF}
    jobs: Jobs = {
        "diffrax Kvaerno5 per call": ("diffrax_restart", {"case": "restarted", "solver": "Kvaerno5", **stiff}),
        "diffrax Kvaerno5 in `lax.scan`": (
            "diffrax_restart",
            {"case": "restarted", "solver": "Kvaerno5", "scan": True, **stiff},
        ),
        **{
            f"cosolve {name}, {how}": ("cosolve_restart", {"case": case, "kind": name, **stiff})
            for name in native
            for case, how in (("compiled", "compiled loop"), ("called", "called from Python"))
        },
        "cosolve `JaxOde` radau5, one step": ("cosolve_restart", {"case": "called", "kind": "jax radau5", **stiff}),
        "cosolve `Ode` Radau (SciPy's)": ("cosolve_restart", {"case": "called", "kind": "Radau", **stiff}),
        "cosolve `Ode` auto": ("cosolve_restart", {"case": "called", "kind": "auto", **stiff}),
        "cosolve dopri5, compiled loop": ("cosolve_restart", {"case": "compiled", "kind": "dopri5", **stiff}),
        "`solve_ivp` Radau": ("scipy_restart", {"case": "restarted", "method": "Radau", **stiff}),
        "casadi cvodes": ("casadi_restart", {"case": "restarted", "plugin": "cvodes", **stiff}),
    }
    samples = bench.interleave(jobs)
    first = "diffrax Kvaerno5 per call"
    section.text += [f"### Stiff (joint damping {p.STIFF:g})", "", *_rows(samples, right, first)]
    ours = [s for name, s in samples.items() if name.startswith("cosolve") and s.runs]
    ours = [s for s in ours if distance(s.answer, right) <= 1e-6]  # what rtol asks for
    best = min(ours, key=lambda s: s.seconds(), default=Sample("none", missing="none of ours is accurate"))
    miss = (
        f"our best is '{best.label}'; `Ode` has no stiff one-step method in machine code: Radau IIA (as in "
        "multibody/equations/radau.py, 3 stages, one LU of the real and one of the complex block) or a stiffly "
        "accurate SDIRK as a kernel next to dopri5, Jacobian by differences of the jitted right-hand side"
    )
    what = "our best stiff restart / diffrax Kvaerno5"
    found = ratio(best, samples[first])
    section.verdicts.append(judge("PF-4", what, found, "<= 0.2", lambda r: r <= 0.2, miss, samples[first].missing))


def _constrained(bench: Bench, section: Section, right: list[float]) -> None:
    jobs: Jobs = {
        "casadi idas, index 1": ("casadi_restart", {"case": "restarted", "plugin": "idas", "rtol": RTOL}),
        "**cosolve `MultibodySubsystem`, compiled loop**": (
            "cosolve_restart",
            {"case": "compiled", "kind": "multibody", "rtol": RTOL},
        ),
        "cosolve `MultibodySubsystem`, called from Python": (
            "cosolve_restart",
            {"case": "called", "kind": "multibody", "rtol": RTOL},
        ),
    }
    samples = bench.interleave(jobs)
    first = "casadi idas, index 1"
    section.text += [
        "### Constrained",
        "",
        "`MultibodySubsystem` carries 26 states and 10 constraints in space and projects after each step; idas carries "
        "12 states and 4 multipliers in the plane and lets the constraints drift.",
        "",
        *_rows(samples, right, first),
    ]
    ours = [samples[name] for name in jobs if "cosolve" in name and samples[name].runs]
    best = min(ours, key=lambda s: s.seconds(), default=Sample("none", missing="none ran"))
    miss = (
        "nearly all of it are the eight evaluations of the equations of motion (ten constraints by Cholesky, in space) "
        "and one projection per step; relative coordinates would need two unknowns instead of 26"
    )
    found = ratio(best, samples[first])
    what = "`MultibodySubsystem` restart / casadi idas"
    section.verdicts.append(judge("PF-4", what, found, "<= 0.2", lambda r: r <= 0.2, miss, samples[first].missing))
