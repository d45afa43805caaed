"""The report of one run: what was coupled, whether it finished, what came out and what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cosolve.basics import registry
from cosolve.drawing.diagram import diagram, edge_text
from cosolve.report import page
from cosolve.report.plots import Line, plot, wild
from cosolve.report.series import Panel, coupling_panels, output_panels
from cosolve.result import Result
from cosolve.result.notes import verdict
from cosolve.result.representation import method_label
from cosolve.result.result import NOT_TIMED

if TYPE_CHECKING:
    from cosolve.fields.field_series import FieldSeries

    Fields = FieldSeries | str | Path

_MOST_COST_ROWS = 25
_MOST_EDGE_ROWS = 200


def write_report(
    result: Result, path: str | Path, *, title: str | None = None, fields: Fields | Sequence[Fields] = ()
) -> Path:
    """Write one self-contained HTML file about a run, finished or not.

    Parameters
    ----------
    result : Result
        The run.
    path : str or Path
        The file.
    title : str or None, default None
        Title of the page. None: method and number of subsystems.
    fields : FieldSeries, path or sequence of them, optional
        Snapshots of the run, from `read_fields` or as `.vtkhdf` files. They are thinned out so that the report stays
        below some ten megabytes.

    Returns
    -------
    Path
        The file.

    Notes
    -----
    It holds the notes of the run, the coupling diagram, outputs and coupling variables over time, the macro steps and
    the cost of each subsystem. Lines are thinned out to what a screen can show; peaks stay.

    Examples
    --------
    >>> import cosolve as cs, tempfile
    >>> from cosolve.report import write_report
    >>> clock = cs.Static(lambda t, u: t, inputs=[], outputs=["t"])
    >>> result = cs.simulate(cs.System({"clock": clock}), t_end=1.0, method=cs.Jacobi(), step=0.1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     "10 macro steps" in write_report(result, folder + "/report.html").read_text(encoding="utf-8")
    True
    """
    method = page.tidy(str(result.meta.get("method", "unknown method")))
    name = title or f"{method_label(result)} run of {page.count(len(result.subsystems), 'subsystem')}"
    outputs, rest = output_panels(result)
    couplings, rest_z = coupling_panels(result)
    held: list[dict[str, Any]] = []  # what the viewer in the page shows
    viewer = _viewer()
    sections = [
        _coupling(result.meta),
        _in_motion(fields, held, viewer),
        page.section("Outputs", _doubt(result), page.grid([_panel(result, p) for p in outputs]), _others(rest))
        if outputs
        else "",
        page.section("Coupling variables", page.grid([_panel(result, p) for p in couplings]), _others(rest_z))
        if couplings
        else "",
        _steps(result),
        _cost(result),
        _closer(result, name, held, viewer),
        viewer.program(held) if held else "",
        _setup(result, method),
    ]
    lead = _verdict(result) + _facts(result)
    return page.write_page(path, page.page(name, lead, filter(None, sections), page.signature()))


# -- header ------------------------------------------------------------------------------------------------


def _verdict(result: Result) -> str:
    stats = result.stats
    took = (
        f"{page.count(stats.steps, 'macro step')}, {stats.rejected} rejected, "
        f"{page.count(stats.iterations, 'correction')}, {page.count(stats.total_calls, 'subsystem call')} "
        f"in {page.seconds(stats.wall_seconds)}."
    )
    found = verdict(result)
    return page.verdict(found.headline, *map(_full_sentence, found.details), took, level=found.level)


def _full_sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def _facts(result: Result) -> str:
    stats, t, H = result.stats, result.t, result.H
    inside = stats.inside
    share = NOT_TIMED if inside is None else "–"
    if inside is not None and stats.wall_seconds > 0:
        share = f"{100 * inside / stats.wall_seconds:.0f} %"
    if not len(H):
        step = str(result.meta.get("step", "–"))
    elif np.ptp(H) <= 1e-9 * H.max():
        step = f"{H[0]:.4g} s"
    else:
        step = f"{H.min():.3g} … {H.max():.3g} s"
    return page.facts(
        {
            "method": method_label(result),
            "macro step": step,
            "time span": f"{t[0]:.4g} … {t[-1]:.6g} s" if len(t) else "–",
            "macro steps": page.number(stats.steps),
            "rejected": page.number(stats.rejected),
            "corrections": page.number(stats.iterations),
            "subsystem calls": page.number(stats.total_calls),
            "wall time": page.seconds(stats.wall_seconds),
            "inside subsystems": share,
            "largest residual": "–" if np.isnan(stats.max_residual) else f"{stats.max_residual:.2e}",
            **_coupling_error(result),
        }
    )


def _coupling_error(result: Result) -> dict[str, str]:
    """The worst of it, where it was asked for."""
    found = result.error_bar
    if found is None:
        return {}
    return {"coupling error": f"at most {found.worst:.1e} of an output" if found.reason is None else "no estimate"}


def _doubt(result: Result) -> str:
    """Why there is no bar, where one was asked for."""
    found = result.error_bar
    if found is None or found.reason is None:
        return ""
    lines = [found.sentence] if not found.reasons else [f"{name}: {why}" for name, why in found.reasons.items()]
    lead = "" if not found.reasons else "No estimate of the coupling error for "
    return page.paragraph(f"{lead}{'; '.join(lines)}.", "muted")


# -- sections ----------------------------------------------------------------------------------------------


def _coupling(meta: Mapping[str, Any]) -> str:
    graph = meta.get("graph")
    if not graph:
        return ""
    drawing, caption = diagram(graph)
    edges = graph["edges"]
    rows = [(edge["label"], edge["kind"], edge_text(edge)) for edge in edges[:_MOST_EDGE_ROWS]]
    more = f", the first {_MOST_EDGE_ROWS} of them" if len(edges) > _MOST_EDGE_ROWS else ""
    listing = page.details(
        f"{page.count(len(edges), 'coupling')} as a list{more}", page.table(("variable", "kind", "what"), rows)
    )
    return page.section("Coupling", page.figure(drawing, caption), listing if edges else "")


def _panel(result: Result, panel: Panel) -> str:
    t, bars = result.t, {} if result.error_bar is None else result.error_bar.bar
    bar = bars.get(panel.name)
    lines = [Line(t, values, label, i, band=bar) for i, (label, values) in enumerate(panel.lines)]
    caption = panel.note
    if bar is not None:
        caption = "; ".join(filter(None, [caption, f"shaded: coupling error, at most about {bar.max():.1e}"]))
    if wild([line.values for line in lines]) is not None:
        caption = "; ".join(filter(None, [caption, "logarithmic axis away from zero"]))
    title = f"{panel.name} [{panel.unit}]" if panel.unit else panel.name
    return page.figure(plot(lines, title=title, scale="auto", describe=panel.describe()), caption)


def _others(names: list[str]) -> str:
    if not names:
        return ""
    shown = ", ".join(names[:40]) + (" …" if len(names) > 40 else "")
    return page.paragraph(f"Not drawn: {page.number(len(names))} more ({shown}).", "muted")


def _steps(result: Result) -> str:
    t, H = result.t[1:], result.H
    if not len(t):
        return ""
    figures, notes = [], []
    if np.ptp(H) <= 1e-9 * H.max():
        notes.append(f"All recorded macro steps have the length H = {H[0]:.6g}.")
    else:
        log = H.max() > 10 * H.min()
        steps = plot([Line(t, H)], title="macro step H", scale="log" if log else "linear", steps=True)
        figures.append(page.figure(steps))
    iterations, residual = result.iterations, result.residual
    error, rejected = result.column("error")[1:], result.column("rejected")[1:]
    if iterations.any() and np.ptp(iterations):
        mean = f"{iterations.mean():.2f} per step on average, {int(iterations.max())} at most"
        drawing = plot([Line(t, iterations)], title="corrections per macro step", steps=True)
        figures.append(page.figure(drawing, mean))
    elif iterations.any():
        notes.append(f"Every macro step took {page.count(int(iterations[0]), 'correction')}.")
    else:
        notes.append("Nothing was iterated: an explicit method.")
    if np.isfinite(residual).any() and np.nanmax(residual) > 0:
        drawing = plot([Line(t, residual, colour=1)], title="interface residual left", scale="log")
        figures.append(page.figure(drawing, f"at most {np.nanmax(residual):.2e}"))
    if np.isfinite(error).any():
        drawing = plot([Line(t, error, colour=2)], title="error estimate / tolerance", scale="log", mark=1.0)
        figures.append(page.figure(drawing, "steps above 1 (dotted) are rejected where subsystems can roll back"))
    if rejected.any():
        drawing = plot([Line(t, rejected, colour=3)], title="rejected attempts before the step", steps=True)
        figures.append(page.figure(drawing, f"{int(rejected.sum())} in all"))
    return page.section("Macro steps", *(page.paragraph(note) for note in notes), page.grid(figures))


def _cost(result: Result) -> str:
    stats = result.stats
    if not stats.calls:
        return ""
    inside, engine = stats.inside, f" {_capital(stats.engine)}." if stats.engine else ""
    spent_in = {} if inside is None else stats.seconds
    order = sorted(stats.calls, key=lambda n: (-spent_in.get(n, 0.0), -stats.calls[n]))
    shown, rest = order[:_MOST_COST_ROWS], order[_MOST_COST_ROWS:]
    counts = [(name, stats.calls[name], stats.jacobians.get(name, 0)) for name in shown]
    if rest:
        jacobians = sum(stats.jacobians.get(n, 0) for n in rest)
        counts.append((f"{len(rest)} others", sum(stats.calls[n] for n in rest), jacobians))
    columns: tuple[str, ...] = ("subsystem", "calls", "Jacobians")
    if inside is None:
        text = f"Time inside the subsystems: {NOT_TIMED}. {page.seconds(stats.wall_seconds)} in all.{engine}"
        return page.section("Cost", page.paragraph(text), page.table(columns, counts))
    most = max(max(stats.seconds.values(), default=0.0), 1e-300)
    times = [stats.seconds.get(name, 0.0) for name in shown] + [sum(stats.seconds.get(n, 0.0) for n in rest)]
    rows: list[tuple[object, ...]] = []
    for k, (row, spent) in enumerate(zip(counts, times, strict=False)):
        each = page.seconds(spent / row[1]) if k < len(shown) and row[1] else "–" if k < len(shown) else ""
        rows.append((*row, page.seconds(spent), each, page.Cell.bar(spent / most if k < len(shown) else 0.0)))
    outside = page.seconds(max(0.0, stats.wall_seconds - inside))
    text = f"{page.seconds(inside)} inside the subsystems, {outside} in the coupling itself.{engine}"
    columns += ("time", "per call", "share of the slowest")
    return page.section("Cost", page.paragraph(text), page.table(columns, rows))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _viewer() -> Any:
    """What makes interactive parts of a page, from the package of the viewer; None without it."""
    return registry.usable("screens").get("viewer")


def _in_motion(fields: Fields | Sequence[Fields], held: list[dict[str, Any]], viewer: Any) -> str:
    """Fields on their meshes, with a slider for the time."""
    files = [fields] if isinstance(fields, (str, Path)) or not isinstance(fields, Sequence) else fields
    if not files or viewer is None:
        return ""
    found, sentences = viewer.fields(files)
    held.append(found)
    notes = [page.paragraph(sentence, "muted") for sentence in sentences]
    return page.section("Fields", *notes, viewer.element(found), kind="screen")


def _closer(result: Result, label: str, held: list[dict[str, Any]], viewer: Any) -> str:
    """The same with zoom and cursor, for readers with a screen."""
    if len(result.t) < 2 or viewer is None:
        return ""
    held.append(viewer.signals(result, label))
    text = "Drag to zoom, double click to see everything, click a connection for its signals."
    return page.section("Look closer", page.paragraph(text, "muted"), viewer.element(held[-1]), kind="screen")


def _setup(result: Result, method: str) -> str:
    elsewhere = ("system", "graph", "body_shapes", "method")
    known = {k: v for k, v in result.meta.items() if k not in elsewhere and v is not None}
    rows = [("method", method), *((key, page.tidy(str(value))) for key, value in known.items())]
    rows.append(("recorded macro points", page.number(len(result.t))))
    text = str(result.meta.get("system", ""))
    listing = page.details("The system as text", page.listing(text)) if text else ""
    return page.section("What was run", page.table(("setting", "value"), rows), listing)
