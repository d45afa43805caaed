"""The animation, and the scripts of the rigid-joint examples: what they draw and print."""

import numpy as np
import pytest
from examples.classical_slider_crank.run import main as classical_slider_crank
from examples.double_pendulum_rigid.run import main as double_pendulum_rigid
from examples.four_bar.run import main as four_bar
from examples.slider_crank.run import main as slider_crank
from examples.two_mass_rigid.run import main as two_mass_rigid
from PIL import Image

import cosolve as cs
from cosolve.report.animation import draw_strobe, gif_html, write_gif

TIMES = np.linspace(0.0, 1.0, 201)
ROD = np.stack([np.zeros((201, 2)), np.array([np.cos(TIMES), np.sin(TIMES)]).T], axis=1)


def test_same_motion_same_bytes(tmp_path):
    """A GIF of the frames asked for, at the speed asked for, byte for byte the same again."""
    first = write_gif(tmp_path / "a.gif", [ROD], TIMES, title="rod", traced=[0], frames=5, speed=0.5)
    second = write_gif(tmp_path / "b.gif", [ROD], TIMES, title="rod", traced=[0], frames=5, speed=0.5)
    assert first.read_bytes() == second.read_bytes()
    with Image.open(first) as gif:
        assert gif.n_frames == 5
        assert gif.info["duration"] == 500  # 2 s in 4 intervals
        start = np.array(gif.convert("L"), dtype=float)
        gif.seek(4)
        end = np.array(gif.convert("L"), dtype=float)
    assert np.abs(start - end).max() > 100  # something moves
    assert np.array_equal(start[:, :40] < 128, end[:, :40] < 128)  # and the frame stands still


def test_inline_picture():
    """One image tag with its data and an escaped title."""
    text = gif_html([ROD], TIMES, title="a < b", frames=3)
    assert text.startswith('<img alt="a &lt; b" src="data:image/gif;base64,R0lGOD')


def test_strobe_draws_every_part():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    draw_strobe(axes, [ROD, ROD + 1.0], TIMES, traced=[1])
    assert len(axes.lines) == 2 * 12 + 1


@pytest.mark.parametrize(
    ("parts", "options", "message"),
    [
        ([], {}, "nothing to draw"),
        ([ROD[:5]], {}, "one frame for every time"),
        ([np.full_like(ROD, np.nan)], {}, "finite numbers"),
        ([ROD], {"traced": [1]}, "there are 1"),
        ([ROD], {"frames": 0}, "at least 1"),
        ([ROD], {"speed": 0.0}, "speed positive"),
    ],
)
def test_bad_animations_are_refused(tmp_path, parts, options, message):
    with pytest.raises(cs.errors.SetupError, match=message):
        write_gif(tmp_path / "a.gif", parts, TIMES, **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("main", "arguments", "said"),
    [
        (double_pendulum_rigid, (), "M2 a = b = 1, k = 0"),
        (classical_slider_crank, (), "M3 omega = 0.9, k = 1"),
        (four_bar, (), "M3 omega = 0.7, k = 1"),
        (slider_crank, (), "M1 index 1, k = 1"),
        (slider_crank, ("--joint", "elastic"), "semi-implicit, k = 2"),
        (slider_crank, ("--joint", "sprung"), "copies unrelaxed"),
        (slider_crank, ("--joint", "bushings"), "on bushings"),
        (double_pendulum_rigid, ("--hinge", "bushing"), "on a bushing"),
    ],
)
def test_planar_scripts(tmp_path, capsys, main, arguments, said):
    """A table and four pictures."""
    main([*arguments, "--out", str(tmp_path)])
    names = {"motion.png", "convergence.png", "mechanism.gif", "mechanism.png"}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert said in capsys.readouterr().out


@pytest.mark.slow
def test_oscillator_script(tmp_path, capsys):
    two_mass_rigid(["--quick", "--out", str(tmp_path)])
    assert {path.name for path in tmp_path.iterdir()} == {"motion.png", "convergence.png", "mechanism.gif"}
    assert "M3 omega = 0.9, k = 1" in capsys.readouterr().out


@pytest.mark.slow
def test_stability_maps(tmp_path, capsys):
    """One command draws the maps of all three methods."""
    two_mass_rigid(["--maps", "--quick", "--out", str(tmp_path)])
    assert {path.name for path in tmp_path.iterdir()} == {"maps.png", "limits.png"}
    said = capsys.readouterr().out
    assert "M3, k = 0                      H = 0.005 s:    0 of 49 unstable" in said  # decades only
    assert "App. B" in said
