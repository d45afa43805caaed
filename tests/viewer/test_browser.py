"""The page in a real browser: Chromium of the system, driven by Playwright. Long ones are slow: docs/howto-view.md."""

import threading
import warnings
from contextlib import contextmanager
from time import monotonic, process_time, sleep

import numpy as np
import pytest
from tests.viewer.browsing import CHROMIUM, ENDED, FLAGS, errors_of, leave, wait
from tests.viewer.conftest import make_masses

import cosolve as cs

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")


@contextmanager
def served(*shown, **more):
    page = cs.view(*shown, open_browser=False, told=None, **more)
    try:
        yield page.address
    finally:
        leave()
        page.close()


def label(page, k=0):
    return page.locator(".plot").nth(k).get_attribute("aria-label")


DRAWN = "document.querySelector('.plot')?.getAttribute('aria-label')?.startsWith('Chart of')"


def test_zoom_cursor_keys_and_two_results_with_their_difference(tab, tmp_path):
    runs = [cs.simulate(make_masses(), t_end=2.0, method=cs.Jacobi(degree=1), step=H) for H in (0.01, 0.02)]
    files = [run.save(tmp_path / f"run{k}.h5") for k, run in enumerate(runs)]
    with served(*files) as address:
        page = tab(address)
        wait(page, DRAWN)
        assert "from t = 0 to 2: run0.h5 is between" in label(page)
        box = page.locator(".u-over").first.bounding_box()
        page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 20)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 30, steps=3)
        page.mouse.up()
        wait(page, "/from t = 0.(49|50)/.test(document.querySelector('.plot').getAttribute('aria-label'))")
        page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 40)
        t = float(page.locator(".note", has_text="at t = ").first.inner_text().removeprefix(" at t = "))
        value = float(page.locator(".chip output").first.inner_text())
        k = int(np.argmin(np.abs(runs[0].t - t)))
        assert value == pytest.approx(runs[0]["one.x"][k], rel=1e-5)  # the value of the row at the cursor
        page.keyboard.press("0")
        wait(page, "document.querySelector('.plot').getAttribute('aria-label').includes('from t = 0 to 2')")
        page.get_by_label("difference to the first").check()
        wait(page, "[...document.querySelectorAll('.plot')][1]?.getAttribute('aria-label')?.includes('run1.h5 is')")
        assert label(page, 1).startswith("Chart of one.x minus run0.h5")
        page.keyboard.press("2")
        page.get_by_role("heading", name="macro step H").wait_for()
        page.keyboard.press("d")
        assert page.locator("#cosolve").get_attribute("data-theme") == "dark"


def test_a_click_on_the_graph_shows_its_signals_and_hostile_names_are_text(tab):
    name = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    result = cs.simulate(make_masses(name), t_end=0.5, method=cs.SemiImplicit(degree=1), step=0.01)
    with served(result) as address:
        page = tab(address)
        wait(page, DRAWN)
        page.get_by_role("tab", name="Coupling").click()
        page.locator(".edge").first.click()
        page.get_by_role("heading", name="spring", exact=True).wait_for()
        assert name in page.locator(".edge-text").inner_text()
        page.get_by_role("tab", name="Facts").click()
        assert page.locator("#cosolve img, #cosolve script").count() == 0


def test_a_run_that_diverged_ends_its_lines_and_its_compiled_steps_have_no_time(tab):
    """Values up to 1e300: drawn up to 1e150, as the heading says; the graph is not coloured by time."""
    growing = cs.Linear([[690.0]], [[1]], [[1]], x0=[1.0], inputs=["u"], outputs=["x"])
    system = cs.System({"a": growing, "b": cs.Linear([[-1]], [[1]], [[1]], x0=[0.0], inputs=["u"], outputs=["x"])})
    system.connect("b.x", "a.u")
    system.set("b.u", 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.errors.StabilityWarning)
        result = cs.simulate(system, t_end=1.0, method=cs.Jacobi(1), step=0.001, compiled=True)
    assert result["a.x"][-1] > 1e290
    with served(result) as address:
        page = tab(address)
        wait(page, DRAWN)
        end = result.t[np.argmax(result["a.x"] > 1e150)]
        heading = page.get_by_role("heading", name="a.x").first.inner_text()
        assert f"(values exceed 1e150 from t = {end:.6g} on)" in heading
        most = float(label(page).rpartition(" and ")[2])
        assert 1e148 < most <= 1e150
        page.get_by_role("tab", name="Coupling").click()
        ways = page.locator(".tools select option").all_inner_texts()
        assert "calls per macro step" in ways
        assert "time spent" not in ways


def test_a_narrow_window_needs_no_sideways_scrolling(tab, result):
    with served(result) as address:
        page = tab(address, viewport={"width": 360, "height": 700})
        wait(page, DRAWN)
        for number in range(4):
            page.keyboard.press(str(number + 1))
            assert page.evaluate("document.documentElement.scrollWidth") <= 360


class Ball(cs.Subsystem):
    inputs = ()
    outputs = (cs.Port("ball_position", size=3), cs.Port("ball_orientation", size=4))

    def start(self, t0):
        return self.at(t0)

    def at(self, t):
        return np.array([np.cos(t), np.sin(t), t / 3, np.cos(t / 2), 0.0, 0.0, np.sin(t / 2)])

    def advance(self, t0, t1, u):
        return self.at(t1)


@pytest.mark.parametrize("where", ["page", "report"])
def test_bodies_move_when_the_slider_does(tab, tmp_path, where):
    """On the page, and in a report that was opened from the disk, where nothing can be loaded."""
    result = cs.simulate(cs.System({"a": Ball()}), t_end=6.0, method=cs.Jacobi(), step=0.1)
    with served(result) as address:
        page = tab(address if where == "page" else cs.write_report(result, tmp_path / "report.html").as_uri())
        page.get_by_role("tab", name="Motion").click()
        page.get_by_text("Shown: a.ball.").wait_for()
        canvas = page.locator(".scene canvas")
        before = canvas.screenshot()
        page.get_by_role("slider", name="Time").fill("30")
        assert page.locator(".player output").inner_text() == "t = 3"
        assert canvas.screenshot() != before


def wave(t):
    """A wave in a channel that rises."""
    places = np.stack(np.meshgrid(np.linspace(0, 4, 9), np.linspace(0, 1, 3)), axis=-1).reshape(-1, 2)
    cells = np.array([[k, k + 1, k + 10, k + 9] for row in (0, 9) for k in range(row, row + 8)])
    velocity = np.column_stack([np.sin(places[:, 0] - t), np.full(27, 2.0)])
    points = places + np.array([0, 0.3 * t])
    return cs.fields.FieldSnapshot(points, {"quad": cells}, {"velocity": velocity}, {"age": np.arange(16.0)})


def test_a_field_moves_and_changes_its_colours_with_the_slider(tab, tmp_path):
    """Two snapshots: a wave that has gone on, and points that have moved."""
    series = cs.fields.read_fields(
        cs.fields.FieldSeries.write(tmp_path / "flow.vtkhdf", [0.0, 1.0], [wave(0.0), wave(1.0)])
    )
    with served(series) as address:
        page = tab(address)
        canvas = page.locator(".scene canvas")
        words = "document.querySelector('.scene canvas')?.getAttribute('aria-label')"
        wait(page, f"{words}?.startsWith('Fields at t = 0: flow.vtkhdf, velocity (magnitude) between 2 and 2.2')")
        pixels = "document.querySelector('.scene canvas').toDataURL()"
        before = page.evaluate(pixels)
        page.get_by_role("slider", name="Time").fill("1")
        wait(page, f"{words}.startsWith('Fields at t = 1:')")
        assert page.evaluate(pixels) != before
        canvas.press("ArrowLeft")
        wait(page, f"{words}.startsWith('Fields at t = 0:')")
        assert page.evaluate(pixels) == before  # the same snapshot, the same picture
        page.get_by_label("Component", exact=True).select_option("x")
        wait(page, f"{words}.includes('velocity (x) between -')")
        assert page.get_by_label("Value of the darkest colour").input_value() == "-0.84147"  # of both snapshots
        page.get_by_label("Range of the colours").select_option("each")
        page.get_by_label("Field", exact=True).select_option("age")
        wait(page, f"{words}.endsWith('age between 0 and 15')")
        assert page.evaluate(pixels) != before
        page.set_viewport_size({"width": 360, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.slow
def test_fields_in_a_report_that_was_opened_from_the_disk(tab, tmp_path, result):
    files = [
        cs.fields.FieldSeries.write(tmp_path / f"{k}.vtkhdf", [0.0, 1.0], [wave(k), wave(k + 1.0)]) for k in (0, 5)
    ]
    report = cs.write_report(result, tmp_path / "report.html", fields=files)
    for file in files:
        file.unlink()  # the report needs them no more
    page = tab(report.as_uri())
    words = "document.querySelector('.scene canvas')?.getAttribute('aria-label')"
    wait(page, f"{words}?.startsWith('Fields at t = 0: 0.vtkhdf, velocity (magnitude) between 2 and 2.2')")
    pixels = "document.querySelector('.scene canvas').toDataURL()"
    before = page.evaluate(pixels)
    page.get_by_role("slider", name="Time").fill("1")
    wait(page, f"{words}.startsWith('Fields at t = 1:')")
    after = page.evaluate(pixels)
    assert after != before
    page.get_by_label("Field", exact=True).first.select_option("age")
    wait(page, f"{words}.includes('0.vtkhdf, age between 0 and 15')")
    page.get_by_role("slider", name="Time").fill("0")
    wait(page, f"{words}.startsWith('Fields at t = 0:')")
    page.get_by_label("Field", exact=True).first.select_option("velocity")
    wait(page, f"{words}.includes('0.vtkhdf, velocity')")
    assert page.evaluate(pixels) == before  # also points that were left and came back
    wait(page, DRAWN)  # the signals, further down on the same page


def test_a_sweep_is_a_map_with_runs_to_look_into(tab):
    import xarray as xr

    values = np.arange(12.0).reshape(4, 3)
    values[3, 2] = np.nan
    errors = np.where(np.isnan(values), "it <b>blew</b> up", "").astype(object)
    found = xr.Dataset(
        {"a.h": (("rate", "level"), values), "error": (("rate", "level"), errors)},
        coords={"rate": [1.0, 2.0, 4.0, 8.0], "level": [0.1, 0.2, 0.3]},
    )
    with served(found) as address:
        page = tab(address)
        chart = page.get_by_role("img", name="Map of a.h over rate and level: 11 runs, between 0 and 10")
        chart.wait_for()
        assert page.locator(".cross").count() == 1
        chart.focus()
        for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowUp", "ArrowUp"):
            chart.press(key)
        page.get_by_text("it <b>blew</b> up").wait_for()
        chart.press("ArrowLeft")
        page.get_by_role("cell", name="8", exact=True).wait_for()  # rate 4, level 0.3


def test_a_run_is_paused_stepped_changed_and_stopped_with_two_pages_of_which_one_is_closed(tab, tmp_path):
    tab.allow(*ENDED)  # the page may ask once more when the run and its server have ended
    tank = cs.Ode(lambda t, x, u: u - x, lambda t, x, u: x, x0=[1.0], inputs=["q"], outputs=["h"])
    system, found = cs.System({"tank": tank}), {}
    system.set("tank.q", cs.TunableInput(0.0, low=-5.0, high=5.0))

    def run():
        found["result"] = cs.simulate(system, t_end=1e4, method=cs.Jacobi(), step=0.01, observers=[live], pace=5.0)

    with cs.Live(open_browser=False, told=None, states=tmp_path) as live:
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        page, other = tab(live.address), tab(live.address)
        where = page.locator(".where")
        page.get_by_text("2 watch").wait_for()
        page.get_by_role("button", name="Pause the run").click()
        page.get_by_text("paused").wait_for()
        steps = live.state()["steps"]
        page.get_by_role("button", name="Take one macro step").click()
        wait(page, f"document.querySelector('.where').textContent.replaceAll(' ', '').includes('{steps + 1}steps')")
        assert live.state()["steps"] == steps + 1
        page.locator(".dial input").fill("3")
        page.locator(".dial input").press("Enter")
        page.get_by_text("tank.q = 3 from t =").wait_for()
        other.close()
        page.get_by_role("button", name="Pause the run").click()
        while live.state()["steps"] < steps + 5:
            sleep(0.05)
        page.get_by_role("button", name="End the run").click()
        page.get_by_text("Ended early").wait_for()
        thread.join(30.0)
        assert "stopped by hand" in where.inner_text()
    result = found["result"]
    assert result.ended.endswith("because it was stopped by hand")
    ((t, name, value),) = result.stats.changed
    assert (name, value) == ("tank.q", 3.0)
    assert (result["tank.q"] == np.where(result.t > t, 3.0, 0.0)).all()


def test_a_system_and_a_file_with_errors(tab, tmp_path):
    with served(make_masses(), method=cs.Jacobi(degree=1), step=0.05) as address:
        page = tab(address)
        page.get_by_role("tab", name="Advice and stability").click()
        page.get_by_role("heading", name="Stability over step and method").wait_for()
        assert page.locator(".map .point").count() == 1
    from cosolve.viewer.host import serve
    from cosolve.viewer.viewer_session import ViewerSession

    server = serve(ViewerSession(problem="'a.toml', line 3: <b>no</b>"), open_browser=False, told=None)
    try:
        assert tab(server.address).locator(".problem").inner_text() == "'a.toml', line 3: <b>no</b>"
    finally:
        leave()
        server.close()


def test_the_report_opens_from_the_disk_alone(tab, result, tmp_path):
    page = tab(cs.write_report(result, tmp_path / "report.html").as_uri())
    wait(page, DRAWN)
    assert "from t = 0 to 2" in label(page)


@pytest.mark.slow
def test_ten_million_points(browser, tmp_path):
    """They are read once, in less than 2 s of CPU, and then moved without being read again."""
    from cosolve.result import Channel, Layout
    from cosolve.result.result import Stats
    from cosolve.result.store import Stream

    rows, block = 10_000_000, 100_000
    stream = Stream(tmp_path / "long.h5", Layout(1, 0, 1), {"a.x": Channel("y", (0,), True)}, ("a",), {})
    for at in range(0, rows, block):
        t = 1e-3 * np.arange(at, at + block)
        y = (np.sin(t) + 0.1 * np.sin(50 * t))[:, np.newaxis]
        rest = dict.fromkeys(("H", "iterations", "residual", "error", "rejected", "calls", "seconds"), 0.0)
        stream.extend(
            {**rest, "t": t, "y": y, "z": np.zeros((block, 0)), "norms": np.zeros(0)}, np.zeros(block, np.int64)
        )
    stream.finish(Stats(steps=rows - 1), None)
    stream.close()
    flags = [flag for flag in FLAGS if "swiftshader" not in flag]  # charts need no graphics card, nor one in software
    plain = browser.browser_type.launch(executable_path=CHROMIUM, args=[*flags, "--disable-gpu"])
    began, spent = monotonic(), process_time()
    with served(tmp_path / "long.h5") as address:
        page = plain.new_page(viewport={"width": 1200, "height": 800})
        errors = errors_of(page)
        page.goto(address)
        wait(page, DRAWN)
        opened, spent = monotonic() - began, process_time() - spent
        page.keyboard.press("+")
        page.keyboard.press("+")
        sleep(1.0)
        pictures = page.evaluate(
            """async () => {
                const times = [];
                for (let k = 0; k < 90; k++) {
                    const key = k < 45 ? "ArrowLeft" : "ArrowRight";
                    document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
                    await new Promise(requestAnimationFrame);
                    times.push(performance.now());
                }
                return (1000 * (times.length - 1)) / (times.at(-1) - times[0]);
            }"""
        )
        plain.close()
    assert errors == []
    print(f"opened in {opened:.2f} s ({spent:.2f} s of CPU here), {pictures:.0f} pictures a second")
    assert spent < 2.0  # what a clock says depends on who else is at work: docs/howto-view.md has what was measured


@pytest.mark.slow
def test_a_run_of_a_minute_at_a_thousand_steps_a_second(tab):
    """Watched all the time; paused, stepped and let go in the middle; not a point is missing at the end."""
    tab.allow(*ENDED)  # the page may ask once more when the run and its server have ended
    tank = cs.Ode(lambda t, x, u: u - x, lambda t, x, u: x, x0=[1.0], inputs=["q"], outputs=["h"])
    system, found = cs.System({"tank": tank}), {}
    system.set("tank.q", cs.TunableInput(0.0))

    def run():
        found["result"] = cs.simulate(system, t_end=60.0, method=cs.Jacobi(), step=1e-3, observers=[live], pace=1.0)

    with cs.Live(open_browser=False, told=None) as live:
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        page = tab(live.address)
        sleep(10.0)
        page.get_by_role("button", name="Pause the run").click()
        page.get_by_text("paused").wait_for()
        page.get_by_role("button", name="Take one macro step").click()
        page.locator(".dial input").fill("2")
        page.locator(".dial input").press("Enter")
        page.get_by_text("tank.q = 2 from t =").wait_for()
        page.get_by_role("button", name="Pause the run").click()
        page.get_by_text("Finished: reached t = 60.").wait_for(timeout=180_000)
        thread.join(30.0)
    assert len(found["result"].t) == 60_001
    assert len(found["result"].stats.changed) == 1
