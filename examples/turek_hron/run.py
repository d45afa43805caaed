"""The benchmark of Turek and Hron: an elastic flag behind a cylinder in a channel, flow and solid coupled.

    python examples/turek_hron/run.py [CASE] [--from-cycle [FILE]] [--fineness 1] [--t-end T] [--out DIR] [--fresh]

Cases are CSM1 to CSM3 (the flag alone), CFD1 to CFD3 (a rigid flag) and FSI1 to FSI3. Without a case: FSI3 from a
stored point of its limit cycle, two periods, and the first picture within two minutes. Results are streamed to a file
in the output folder (`build/turek_hron` unless given); a run that was interrupted (Ctrl-C, a killed machine) goes on
where it was when the same command is given again, and `--fresh` begins anew. The table at the end gives the published
values next to those of the run.

Steady cases take seconds. On one core: CSM3 and FSI1 less than half a minute, CFD3 five minutes, FSI2 and FSI3 about a
quarter of an hour each. `--from-cycle` starts FSI2 and FSI3 in their stored limit cycles.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import cosolve as cs
from examples.turek_hron import limit_cycle
from examples.turek_hron.model import CASES, LATER, REFERENCE, SIGNALS, Case, fluid, measured, method, solid, system

Found = dict[str, tuple[float, float, float]]

UNITS = {"ux": "mm", "uy": "mm", "drag": "N/m", "lift": "N/m"}


def table(case: Case, found: Found) -> str:
    """Every quantity of the case: mean, amplitude and frequency, measured and published (also later, where known)."""
    later = LATER.get(case.name)
    lines = [f"{case.name:<14}{'here':>32}{'Turek and Hron (2006)':>32}{'Featflow, later' if later else '':>32}"]
    for name, published in REFERENCE[case.name].items():
        cells = [found[name], published, *([later[name]] if later else [])]
        lines.append(f"{name + ' in ' + UNITS[name]:<14}" + "".join(f"{_shown(*cell):>32}" for cell in cells))
    return "\n".join(line.rstrip() for line in lines)


def _shown(mean: float, amplitude: float, frequency: float) -> str:
    return f"{mean:.4g}" if not amplitude else f"{mean:.4g} +- {amplitude:.4g} [{frequency:.3f} Hz]"


def run_steady(case: Case, fineness: float | None = None) -> Found:
    """The cases in which nothing changes: one nonlinear system of equations."""
    if case.kind == "CSM":
        values = solid(case, fineness).static(steps=2)
        return {"ux": (1e3 * values["A_x"], 0.0, 0.0), "uy": (1e3 * values["A_y"], 0.0, 0.0)}
    values = fluid(case, fineness).steady()
    return {name: (values[name], 0.0, 0.0) for name in ("drag", "lift")}


def run_in_time(
    case: Case,
    joined: cs.System,
    file: Path,
    t_end: float,
    step: float,
    *,
    t_start: float = 0.0,
    startup: cs.Startup | None = None,
    tol: float = 1e-5,
    fresh: bool = False,
) -> cs.Result:
    """Simulate into a file, or go on with the run whose file is there."""
    if fresh:
        for old in file.parent.glob(file.name + "*"):
            old.unlink()
    if file.exists():
        print(f"going on with {file} (--fresh begins anew)")
        return cs.resume(file, joined, startup=startup, progress=_Bar())
    return cs.simulate(
        joined,
        t_start=t_start,
        t_end=t_end,
        startup=startup,
        method=method(case, tol=tol),
        step=step,
        save=file,
        record=[SIGNALS[name][0] for name in REFERENCE[case.name]],
        state_every="1 min",
        progress=_Bar(),
    )


class _Bar:
    """A progress bar on one line; nothing where the output is no terminal."""

    def __call__(self, fraction: float) -> None:
        if sys.stderr.isatty():
            full = int(40 * fraction)
            print(f"\r[{'#' * full}{'.' * (40 - full)}] {fraction:6.1%}", end="", file=sys.stderr, flush=True)
            if fraction >= 1.0:
                print(file=sys.stderr)


def evaluated(case: Case, result: cs.Result) -> Found:
    """Mean, amplitude and frequency at the end of a run; one from a stored point has twenty steps to forget it."""
    signals = {name: SIGNALS[name] for name in REFERENCE[case.name]}
    first = 20 if result.t[0] > 0.0 and len(result.t) > 60 else 0
    return {name: measured(result.t[first:], unit * result[path][first:]) for name, (path, unit) in signals.items()}


# -- pictures --------------------------------------------------------------------------------------------------------


def draw_history(path: Path, case: Case, result: cs.Result) -> None:
    """All quantities over time, the published range shaded; below them the iterations per step."""
    import matplotlib.pyplot as plt

    names = list(REFERENCE[case.name])
    rows = len(names) + (case.kind == "FSI")
    figure, axes = plt.subplots(
        rows, 1, figsize=(9, 1.7 * rows + 0.8), sharex=True, layout="constrained", squeeze=False
    )
    for ax, name in zip(axes[:, 0], names, strict=False):
        path_in_result, unit = SIGNALS[name]
        mean, amplitude, _ = REFERENCE[case.name][name]
        ax.axhspan(mean - amplitude, mean + amplitude, color="tab:orange", alpha=0.25, lw=0 if amplitude else 2)
        ax.plot(result.t, unit * result[path_in_result], lw=0.9)
        ax.set_ylabel(f"{name} in {UNITS[name]}")
        ax.grid(alpha=0.3)
    if case.kind == "FSI":
        axes[-1, 0].plot(result.t[1:], result.iterations + 1, ".", ms=2, color="0.3")
        axes[-1, 0].set_ylabel("iterations")
        axes[-1, 0].set_ylim(0, None)
    axes[0, 0].set_title(f"{case.name}; shaded: mean and amplitude of Turek and Hron")
    axes[-1, 0].set_xlabel("t in s")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def draw_flow(path: Path, case: Case, joined: cs.System) -> None:
    """Speed of the flow around cylinder and flag as they are now."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Circle

    seen = joined.subsystems["fluid"].snapshot()
    speed = np.hypot(*seen.point_data["velocity"].T)
    cells = seen.cells["triangle6"]
    fine = np.concatenate([cells[:, [0, 3, 5]], cells[:, [3, 1, 4]], cells[:, [5, 4, 2]], cells[:, [3, 4, 5]]])
    figure, ax = plt.subplots(figsize=(11, 2.7), layout="constrained")
    drawn = ax.tripcolor(*seen.points.T, fine, speed, shading="gouraud", cmap="viridis")
    ax.add_patch(Circle((0.2, 0.2), 0.05, color="0.8"))
    if "solid" in joined.subsystems:
        flag = joined.subsystems["solid"].snapshot()
        corners = flag.cells["triangle6"][:, :3]
        ax.tripcolor(*flag.points.T, corners, np.ones(len(flag.points)), cmap="autumn", vmin=0.0, vmax=1.2)
    else:
        ax.fill([0.249, 0.6, 0.6, 0.249], [0.19, 0.19, 0.21, 0.21], color="0.8")
    figure.colorbar(drawn, ax=ax, label="speed in m/s", pad=0.01)
    ax.set(xlim=(0, 1.6), ylim=(0, 0.41), aspect="equal", xlabel="x in m", ylabel="y in m", title=case.name)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="?", choices=list(CASES), help="default: FSI3 --from-cycle")
    parser.add_argument(
        "--from-cycle", nargs="?", const="", metavar="FILE", help="FSI2, FSI3: start in the limit cycle that is stored"
    )
    parser.add_argument("--store", type=Path, metavar="FILE", help="keep the end of the run, for --from-cycle")
    parser.add_argument("--t-end", type=float, help="how long; default: until the motion has settled")
    parser.add_argument("--step", type=float, help="macro step in s")
    parser.add_argument("--tol", type=float, default=1e-5, help="of the coupling, relative to the displacement")
    parser.add_argument(
        "--fineness", type=float, help="2: triangles half as large as at 1; default: 1, CFD2, CFD3 and FSI2 1.5"
    )
    parser.add_argument("--out", type=Path, default=Path("build/turek_hron"))
    parser.add_argument("--fresh", action="store_true", help="forget an earlier run")
    options = parser.parse_args()
    case = CASES[options.case or "FSI3"]
    from_cycle = options.from_cycle is not None or options.case is None
    if from_cycle and case.name not in LATER:
        parser.error(f"--from-cycle: the limit cycles of FSI2 and FSI3 are stored, {case.name} has none")
    options.out.mkdir(parents=True, exist_ok=True)
    if not case.step:
        print(table(case, run_steady(case, options.fineness)))
        return
    joined = system(case, options.fineness)
    t_start, startup = 0.0, None
    if from_cycle:
        stored = options.from_cycle or limit_cycle.nearest(case.name, options.fineness or case.fineness)
        t_start = case.t_end
        parts = joined.subsystems
        startup = limit_cycle.set_start(parts["fluid"], parts["solid"], Path(stored), t_start)
    t_end = options.t_end or (t_start + 0.375 if from_cycle else case.t_end)
    name = case.name + ("_cycle" if from_cycle else "")
    file = options.out / f"{name}.h5"
    try:
        result = run_in_time(
            case,
            joined,
            file,
            t_end,
            options.step or case.step,
            t_start=t_start,
            startup=startup,
            tol=options.tol,
            fresh=options.fresh or options.case is None,
        )
    except KeyboardInterrupt:
        print(f"\nstopped; the same command goes on from the last state beside {file}")
        raise SystemExit(1) from None
    print(table(case, evaluated(case, result)))
    if case.kind == "FSI":
        counts = result.iterations + 1
        print(f"iterations per step: {counts.mean():.2f} on average, {counts.max()} at most")
    print(result.stats)
    if options.store and case.kind == "FSI":
        limit_cycle.store(joined.subsystems["fluid"], joined.subsystems["solid"], options.store)
    draw_history(options.out / f"{name}_history.png", case, result)
    if case.kind != "CSM":
        draw_flow(options.out / f"{name}_flow.png", case, joined)
    print(f"pictures and result in {options.out}")


if __name__ == "__main__":
    main()
