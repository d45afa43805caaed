"""The widget where it is meant to be: in JupyterLab and in marimo, in a real browser.

Both are large, so they are no part of the tools. `COSOLVE_NOTEBOOKS` names a Python that has jupyterlab, marimo and
anywidget, and what cosolve itself needs:

    COSOLVE_NOTEBOOKS=.../bin/python pytest tests/viewer/test_notebooks.py -m slow
"""

import json
import os
import re
import socket
import urllib.request
from contextlib import contextmanager
from secrets import token_hex

import numpy as np
import pytest
from tests import processes
from tests.viewer.browsing import CHROMIUM

PYTHON = os.environ.get("COSOLVE_NOTEBOOKS")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here"),
    pytest.mark.skipif(PYTHON is None, reason="COSOLVE_NOTEBOOKS names no Python with JupyterLab and marimo"),
]

RUN = """\
import cosolve as cs
def mass(m, x):
    return cs.Linear([[0, 1], [-1 / m, -0.1]], [[0], [1 / m]], [[1, 0]], x0=[x, 0], inputs=["f"], outputs=["x"])
system = cs.System({"one": mass(1.0, 0.0), "two": mass(2.0, 1.0)})
system.law({"one.f": 1, "two.f": -1}, lambda a, b: 9 * (b - a), of=["one.x", "two.x"], name="spring")
result = cs.simulate(system, t_end=2.0, method=cs.Jacobi(degree=1), step=0.01)"""
FIELDS = """\
import numpy as np
def rising(t):
    corners = np.array([[0.0, t], [2.0, t], [2.0, 1.0 + t], [0.0, 1.0 + t]])
    return cs.fields.FieldSnapshot(corners, {"quad": np.array([[0, 1, 2, 3]])}, {"p": np.arange(4.0) + t})
series = cs.fields.read_fields(cs.fields.FieldSeries.write("rising.vtkhdf", [0.0, 0.5], [rising(0.0), rising(0.5)]))"""

#: Pixels of a chart that are neither transparent nor of the most frequent colour.
INK = """(plot) => {
    const canvas = plot.querySelector("canvas");
    const pixels = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
    return pixels.filter((pixel) => pixel >>> 24).length;
}"""


@contextmanager
def serving(command, folder, log, path):
    """A server of notebooks in a folder, which knows no settings of the user; gives its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    own = {name: str(folder / "own") for name in ("HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR")}
    own |= {name: str(folder / "own") for name in ("JUPYTER_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME")}
    own["JUPYTERLAB_SETTINGS_DIR"] = str(folder / "settings")
    address = f"http://127.0.0.1:{port}{path}"

    def answers():
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address, timeout=5.0) as page:
                return page.status == 200
        except OSError:
            return False

    words = [word.replace("PORT", port) for word in command]
    with log.open("w") as said:
        environment = processes.environment(**own)
        with processes.started([PYTHON, *words], cwd=folder, env=environment, stdout=said, stderr=said):
            assert processes.until(answers, 120.0), log.read_text()
            yield address


def looked_at(page):
    """The chart of `one.x` is drawn, zooms where one drags, and shows the value of the run at the cursor."""
    around = page.locator(".cosolve .chart").first
    chart = around.locator(".plot")
    chart.wait_for()
    processes.until(lambda: (chart.get_attribute("aria-label") or "").startswith("Chart of"))
    assert chart.get_attribute("aria-label").startswith("Chart of one.x"), chart.get_attribute("aria-label")
    assert chart.evaluate(INK) > 500
    chart.scroll_into_view_if_needed()
    box = chart.locator(".u-over").bounding_box()
    height = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.25, height)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, height, steps=5)
    page.mouse.up()
    zoomed = re.compile(r"from t = 0\.(49|5)\d* to (0\.99|1)")
    assert processes.until(lambda: zoomed.search(chart.get_attribute("aria-label"))), chart.get_attribute("aria-label")
    page.mouse.move(box["x"] + box["width"] * 0.4, height)
    t = float(around.locator(".note").inner_text().replace("at t =", ""))
    value = float(around.locator(".chip output").first.inner_text())
    same = {}
    exec(RUN, same)
    run = same["result"]
    assert value == pytest.approx(run["one.x"][int(np.argmin(np.abs(run.t - t)))], rel=1e-5)


def moved(page):
    """The field is drawn, and its picture changes with the slider."""
    canvas = page.locator(".cosolve .scene canvas")
    canvas.wait_for()
    canvas.scroll_into_view_if_needed()
    label = lambda: canvas.get_attribute("aria-label")  # noqa: E731
    assert processes.until(lambda: label() == "Fields at t = 0: rising.vtkhdf, p between 0 and 3"), label()
    before = canvas.evaluate("canvas => canvas.toDataURL()")
    page.get_by_role("slider", name="Time").fill("1")
    assert processes.until(lambda: label() == "Fields at t = 0.5: rising.vtkhdf, p between 0.5 and 3.5"), label()
    assert canvas.evaluate("canvas => canvas.toDataURL()") != before


def pictured(page, name):
    """Pictures: `COSOLVE_PICTURES` names a folder."""
    if "COSOLVE_PICTURES" in os.environ:
        page.screenshot(path=os.path.join(os.environ["COSOLVE_PICTURES"], f"{name}.png"))


def test_in_jupyterlab(tab, tmp_path):
    cells = [f"{RUN}\ncs.widget(result)", f"{FIELDS}\ncs.widget(series)"]
    made = [
        {"cell_type": "code", "id": f"c{k}", "execution_count": None, "metadata": {}, "outputs": [], "source": cell}
        for k, cell in enumerate(cells)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = {"cells": made, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "look.ipynb").write_text(json.dumps(notebook))
    news = tmp_path / "settings/@jupyterlab/apputils-extension/notification.jupyterlab-settings"
    news.parent.mkdir(parents=True)
    news.write_text('{"fetchNews": "false", "checkForUpdates": false}')  # it would ask, and look elsewhere
    token = token_hex(16)
    command = ["-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", "--port=PORT"]
    command += ["--ServerApp.port_retries=0", f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={tmp_path}"]
    with serving(command, tmp_path, tmp_path / "lab.log", f"/lab/tree/look.ipynb?token={token}") as address:
        page = tab(address)
        page.locator(".jp-Notebook .jp-Cell").nth(1).wait_for()
        page.get_by_text("| Idle").wait_for()  # what is run before the kernel is there is forgotten
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        looked_at(page)
        pictured(page, "jupyterlab-signals")
        moved(page)
        pictured(page, "jupyterlab-fields")
        paper = "() => getComputedStyle(document.querySelector('.cosolve')).backgroundColor"
        assert page.evaluate(paper) == "rgb(255, 255, 255)"
        picture = "() => document.querySelector('.cosolve .scene canvas').toDataURL()"
        bright = page.evaluate(picture)
        page.get_by_role("menuitem", name="Settings", exact=True).click()
        page.locator(".lm-Menu-item").filter(has_text="Theme").first.hover()
        page.locator(".lm-Menu-item").filter(has_text="JupyterLab Dark").first.click()
        assert processes.until(lambda: page.evaluate(paper) == "rgb(20, 24, 30)")  # as dark as the notebook around it
        assert processes.until(lambda: page.evaluate(picture) != bright)
        pictured(page, "jupyterlab-dark")
        page.close()  # before its server ends


def test_in_marimo(tab, tmp_path):
    cells = [f"{RUN}\ncs.widget(result)", f"{FIELDS}\ncs.widget(series)"]
    text = "import marimo\napp = marimo.App(width='medium')\n"
    for names, cell, last in zip(["", "cs"], cells, ["return cs, result", "return"], strict=True):
        body = "\n".join(f"    {line}" for line in cell.splitlines())
        text += f"\n\n@app.cell\ndef _({names}):\n{body}\n    {last}\n"
    (tmp_path / "look.py").write_text(text + '\n\nif __name__ == "__main__":\n    app.run()\n')
    token = token_hex(16)
    command = ["-m", "marimo", "-q", "run", "look.py", "--headless", "--host=127.0.0.1", "--port=PORT"]
    command += [f"--token-password={token}"]
    with serving(command, tmp_path, tmp_path / "marimo.log", f"/?access_token={token}") as address:
        page = tab(address)
        looked_at(page)
        pictured(page, "marimo-signals")
        moved(page)
        pictured(page, "marimo-fields")
        page.close()  # before its server ends
