"""Two-mass oscillator, explicit coupling: the pictures of Schmoll (2015), Figs. 2.14-2.23.

    python examples/two_mass/run.py [--out DIR] [--quick] [--jobs N]

What is drawn (`DIR` is `build/two_mass` unless given; two minutes or so on two cores, `--quick` some twenty seconds):

- NRMSE over the macro step, global and local, degrees 0 to 5, with guide lines of the theoretical order and the
  stability limits as vertical lines: `jacobi.png` (2.14), `gauss_seidel.png` (2.15), `jacobi_trivial_start.png`
  (2.19: the first steps cap the order), `jacobi_master_slave_start.png` (2.21: mended), `jacobi_ode2.png` (2.22:
  floor of a second-order solver), `jacobi_long_micro_steps.png` (2.23: h = 1e-5 s, left of that line the solvers
  step across several macro points);
- `master_slave.png` (2.16, 2.20): NRMSE over the degree when the macro step is the master's step;
- `error_control.png` (2.17, 2.18): NRMSE and mean macro step over the tolerance.

Long runs iterate the matrix of the macro step after 20 steps of the engine (see study.py); error-controlled runs and
those with H < h take the engine throughout. The numbers are checked in tests/method/explicit.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: threads would only wait for each other

import numpy as np

import cosolve as cs
from examples.two_mass.model import force_displacement
from examples.two_mass.study import (
    Trajectory,
    by_map,
    engine,
    global_error,
    known_past,
    local_error,
    with_micro_steps,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("tab:red", "tab:orange", "tab:olive", "tab:green", "tab:blue", "tab:purple")
#: Larger errors are unstable runs; they leave the picture.
_LARGEST = 1e2

Run = Callable[[int, float], Trajectory]


@dataclass(frozen=True)
class Settings:
    """How fine the studies are; the defaults are those of the source."""

    steps: tuple[float, ...] = tuple(float(H) for H in np.geomspace(1e-3, 3e-6, 16))
    short_steps: tuple[float, ...] = (7.5e-6, 5.6e-6, 4e-6, 3e-6)
    tolerances: tuple[float, ...] = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
    degrees: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    t_end: float = 1.0
    t_short: float = 0.2


QUICK = Settings(
    steps=(3e-4, 1e-4, 3e-5, 1e-5),
    short_steps=(5.6e-6,),
    tolerances=(1e-1, 1e-2, 1e-3),
    t_end=0.1,
    t_short=0.02,
)

Errors = dict[int, np.ndarray]  # degree -> rows (x, global, local)


# -- error over macro step -----------------------------------------------------------------------------------


def jacobi(path: Path, use: Settings) -> Errors:
    """Fig. 2.14."""
    return _over_steps(
        path,
        use,
        "Jacobi, analytic start",
        lambda p, H: by_map(cs.Jacobi(p), H, use.t_end, startup=known_past()),
        limit=cs.Jacobi,
    )


def gauss_seidel(path: Path, use: Settings) -> Errors:
    """Fig. 2.15."""
    return _over_steps(
        path,
        use,
        "Gauss-Seidel, analytic start",
        lambda p, H: by_map(cs.GaussSeidel(p), H, use.t_end, startup=known_past()),
        limit=cs.GaussSeidel,
        local_gain=2,
    )


def jacobi_trivial_start(path: Path, use: Settings) -> Errors:
    """Fig. 2.19."""
    return _over_steps(
        path,
        use,
        "Jacobi, trivial start (degree 0, 1, 2, ...); local error without the first 20 steps",
        lambda p, H: by_map(cs.Jacobi(p), H, use.t_end, startup=cs.RisingDegree()),
        limit=cs.Jacobi,
        skip=20,
    )


def jacobi_master_slave_start(path: Path, use: Settings) -> Errors:
    """Fig. 2.21."""
    system, start = with_micro_steps("ode5", 1e-6), cs.LeaderFollowerStart(leader="one")
    return _over_steps(
        path,
        use,
        "Jacobi, master/slave start (h = 1e-6 s); local error without the first 20 steps",
        lambda p, H: by_map(cs.Jacobi(p), H, use.t_end, system=system, startup=start),
        limit=cs.Jacobi,
        skip=20,
    )


def jacobi_ode2(path: Path, use: Settings) -> Errors:
    """Fig. 2.22."""
    system = with_micro_steps("ode2", 1e-6)
    return _over_steps(
        path,
        use,
        "Jacobi with ODE2, h = 1e-6 s, analytic start",
        lambda p, H: by_map(cs.Jacobi(p), H, use.t_end, system=system, startup=known_past()),
        limit=cs.Jacobi,
    )


def jacobi_long_micro_steps(path: Path, use: Settings) -> Errors:
    """Fig. 2.23."""
    h = 1e-5
    hits, free = with_micro_steps("ode5", h), with_micro_steps("ode5", h, free=True)

    def run(p: int, H: float) -> Trajectory:
        if H >= h * (1 - 1e-9):
            return by_map(cs.Jacobi(p), H, use.t_short, system=hits, startup=known_past())
        return engine(cs.Jacobi(p), H, use.t_short, system=free, startup=known_past())

    steps = (*(H for H in use.steps if h * 1.001 < H), h, *use.short_steps)
    title = f"Jacobi with ODE5, h = 1e-5 s, analytic start, T = {use.t_short:g} s"
    return _over_steps(path, use, title, run, limit=cs.Jacobi, steps=steps, mark=h, global_only=True)


def _over_steps(
    path: Path,
    use: Settings,
    title: str,
    run: Run,
    *,
    limit: Callable[[int], cs.Method],
    local_gain: int = 1,
    skip: int = 0,
    steps: tuple[float, ...] | None = None,
    mark: float | None = None,
    global_only: bool = False,
) -> Errors:
    steps = use.steps if steps is None else steps
    figure, panels = _figure(1 if global_only else 2)
    errors: Errors = {}
    for p in use.degrees:
        rows = []
        for H in steps:
            path_of_p = run(p, H)
            rows.append((H, global_error(path_of_p), np.nan if global_only else local_error(path_of_p, skip=skip)))
        errors[p] = np.array(rows)
        critical = _limit(limit(p))
        for axes, column, order in zip(panels, (1, 2), (p + 1, p + local_gain), strict=False):
            _curve(axes, errors[p][:, 0], errors[p][:, column], order, critical, p)
    for axes, name in zip(panels, ("global", "local"), strict=False):
        if mark is not None:
            axes.axvline(mark, color="0.3", lw=1, ls="--")
            axes.text(mark * 0.96, 3.0, "H < h", ha="right", va="top", fontsize=9, color="0.3")
        _decorate(axes, f"{name} NRMSE", "macro step H in s", min(steps), max(steps))
    _finish(figure, panels[0], path, title)
    return errors


@cache
def _limit(method: cs.Method) -> float:
    """The stability limit of a method."""
    return cs.analysis.critical_step(force_displacement(), method, step_range=(1e-5, 2e-3))


def _curve(axes: Axes, H: np.ndarray, error: np.ndarray, order: int, critical: float, p: int) -> None:
    colour = COLOURS[p]
    shown = np.where(error < _LARGEST, error, np.nan)
    axes.loglog(H, shown, "o-", color=colour, ms=3.5, lw=1.2, label=f"p = {p}")
    if np.isfinite(critical):
        axes.axvline(critical, color=colour, lw=0.9, ls=":")
    useful = np.isfinite(shown) & (shown < 0.3) & (H < 0.5 * critical)
    if useful.any():  # the order is seen best where it has set in and rounding is far
        anchor = np.flatnonzero(useful)[0]
        guide = 0.5 * shown[anchor] * (H / H[anchor]) ** order
        guide[(guide < shown[useful].min() / 3) | (H > H[anchor])] = np.nan
        axes.loglog(H, guide, "-", color=colour, lw=0.7, alpha=0.5)
        axes.annotate(
            f"$H^{order}$",
            (H[anchor], guide[anchor]),
            xytext=(3, -8),
            textcoords="offset points",
            fontsize=7.5,
            color=colour,
        )


# -- error over degree ---------------------------------------------------------------------------------------


def master_slave(path: Path, use: Settings) -> dict[str, np.ndarray]:
    """Figs. 2.16 and 2.20: master/slave with h = 1e-6 s, which is Gauss-Seidel with H = h (a test holds that)."""
    h = 1e-6
    figure, (axes,) = _figure(1)
    found = {}
    for label, startup, style in (("analytic start", known_past(), "o-"), ("trivial start", cs.RisingDegree(), "s--")):
        errors = [
            global_error(by_map(cs.GaussSeidel(p), h, use.t_short, system=with_micro_steps("ode5", h), startup=startup))
            for p in use.degrees
        ]
        found[label] = np.array(errors)
        axes.semilogy(use.degrees, errors, style, label=label)
        for p, error in zip(use.degrees, errors, strict=True):
            above = label.startswith("trivial")
            axes.annotate(
                f"{error:.1e}",
                (p, error),
                xytext=(5, 6) if above else (-6, -11),
                ha="left" if above else "right",
                textcoords="offset points",
                fontsize=8,
                color="tab:orange" if above else "tab:blue",
            )
    axes.set_xlabel("degree p")
    axes.set_ylabel("global NRMSE")
    axes.set_xticks(use.degrees)
    axes.margins(x=0.12, y=0.12)
    axes.grid(alpha=0.3)
    _finish(figure, axes, path, f"Gauss-Seidel master/slave, ODE5, h = 1e-6 s, T = {use.t_short:g} s", beside=False)
    return found


# -- error over tolerance ------------------------------------------------------------------------------------


def error_control(path: Path, use: Settings) -> dict[int, np.ndarray]:
    """Figs. 2.17 and 2.18: degree -> rows (tolerance, global, local, mean H)."""
    H_min, H_max = 1e-5, 1e-2
    figure, panels = _figure(3)
    found = {}
    for p in use.degrees:
        rows: list[tuple[float, float, float, float]] = []
        for TOL in use.tolerances:
            if rows and rows[-1][3] < 1.002 * H_min:  # held at H_min already: a smaller tolerance changes nothing
                rows.append((TOL, *rows[-1][1:]))
                continue
            limits = {"first_step": H_min, "min_step": H_min, "max_step": H_max}
            control = cs.Adaptive(rtol=TOL, **limits, reject=False, weights="newest")
            run = engine(cs.Jacobi(p), control, use.t_end, system=with_micro_steps("ode5", 5e-6), startup=known_past())
            rows.append((TOL, global_error(run), local_error(run), float(run.H.mean())))
        found[p] = np.array(rows)
        for axes, column in zip(panels, (1, 2, 3), strict=True):
            shown = (
                found[p][:, column] if column == 3 else np.where(found[p][:, column] < 1e4, found[p][:, column], np.nan)
            )
            axes.loglog(found[p][:, 0], shown, "o-", color=COLOURS[p], ms=3.5, lw=1.2, label=f"p = {p}")
        panels[2].axhline(_limit(cs.Jacobi(p)), color=COLOURS[p], lw=0.9, ls=":")
    panels[1].loglog(use.tolerances, use.tolerances, "k--", lw=0.9)
    panels[1].text(0.03, 0.95, "dashed: NRMSE = TOL", transform=panels[1].transAxes, fontsize=8)
    for axes, name in zip(panels, ("global NRMSE", "local NRMSE", "mean macro step in s"), strict=True):
        axes.set_xlabel("tolerance TOL")
        axes.set_title(name, fontsize=10)
        axes.grid(which="major", alpha=0.3)
    panels[2].text(0.97, 0.03, "dotted: stability limits", transform=panels[2].transAxes, ha="right", fontsize=8)
    _finish(figure, panels[0], path, "Jacobi with error-controlled macro steps (PI), H between 1e-5 and 1e-2 s")
    return found


# -- drawing -------------------------------------------------------------------------------------------------


def _figure(panels: int) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=({1: 7.5, 2: 11.0, 3: 13.5}[panels], 4.8), layout="constrained")
    return figure, list(np.atleast_1d(figure.subplots(1, panels)))


def _decorate(axes: Axes, title: str, x_label: str, low: float, high: float) -> None:
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(x_label)
    axes.set_xlim(low / 1.15, high * 1.15)
    axes.set_ylim(top=10.0)
    axes.grid(which="major", alpha=0.3)


def _finish(figure: Figure, axes: Axes, path: Path, title: str, *, beside: bool = True) -> None:
    figure.suptitle(title, fontsize=11)
    if beside:
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right center", frameon=False)
    else:
        axes.legend()
    figure.savefig(path, dpi=130)


FIGURES: dict[str, Callable[[Path, Settings], Any]] = {
    # the longest first, so that parallel jobs end together
    "error_control": error_control,
    "jacobi_long_micro_steps": jacobi_long_micro_steps,
    "jacobi_master_slave_start": jacobi_master_slave_start,
    "jacobi": jacobi,
    "gauss_seidel": gauss_seidel,
    "jacobi_trivial_start": jacobi_trivial_start,
    "jacobi_ode2": jacobi_ode2,
    "master_slave": master_slave,
}


def draw(name: str, folder: Path, use: Settings) -> Path:
    """Draw one figure."""
    path = folder / f"{name}.png"
    FIGURES[name](path, use)
    return path


def main(arguments: list[str] | None = None) -> None:
    """Draw everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("build/two_mass"), help="folder of the pictures")
    parser.add_argument("--quick", action="store_true", help="coarse and short, some twenty seconds")
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1), help="figures drawn at the same time")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    use = QUICK if options.quick else Settings()
    if options.jobs <= 1:
        for name in FIGURES:
            print(draw(name, options.out, use), flush=True)
        return
    from concurrent.futures import ProcessPoolExecutor, as_completed

    with ProcessPoolExecutor(options.jobs) as pool:
        for job in as_completed([pool.submit(draw, name, options.out, use) for name in FIGURES]):
            print(job.result(), flush=True)


if __name__ == "__main__":
    main()
