"""Mappings of configuration files against the values measured with an independent program (specification, 8.3)."""

import numpy as np
import pytest
from tests.precice.together import couple

GRID = np.array([[i / 3, j / 3] for j in range(4) for i in range(4)])
FIELD = np.sin(2 * GRID[:, 0]) + GRID[:, 1] ** 2
TRIANGLES = [
    row for j in range(3) for i in range(3) for k in [4 * j + i] for row in ([k, k + 1, k + 5], [k, k + 5, k + 4])
]
TARGETS = np.array([(0.1, 0.2), (0.5, 0.45), (0.9, 0.3), (0.35, 0.8), (0.75, 0.95)])
LINE = np.array([[0.25 * i, 0.0] for i in range(5)])
LINE_FIELD = 1 + LINE[:, 0] ** 2
LINE_EDGES = [[0, 1], [1, 2], [2, 3], [3, 4]]
LINE_TARGETS = np.array([(0.1, 0.05), (0.6, -0.02), (1.1, 0.0), (0.375, 0.01)])
TARGET_EDGES = [[0, 3], [3, 1], [1, 2]]

CASES = {
    "nearest neighbour": ("grid", "nearest-neighbor", "consistent", "",
        [0.111111111111, 1.08304901247, 1.02040853794, 1.06281424751, 1.97193790136], 1e-10),
    "nearest neighbour, conservative": ("grid", "nearest-neighbor", "conservative", "",
        [0.729480914181, 3.22891227246, 2.90164386613, 4.12562849503, 5.23497719946], 1e-10),
    "gradient": ("grid", "nearest-neighbor-gradient", "consistent", "",
        [0.222222222222, 1.08241426582, 1.08141568302, 1.26678826732, 1.91114416358], 1e-10),
    "cells": ("grid", "linear-cell-interpolation", "consistent", "",
        [0.252177607588, 1.02293162999, 1.02808956919, 1.30271487465, 1.8729444494], 1e-10),
    "projection": ("line", "nearest-projection", "consistent", "", [1.025, 1.375, 2, 1.15625], 1e-10),
    "projection, conservative": ("line", "nearest-projection", "conservative", "",
        [1.46744496601, 2.18095624875, 2.07113618211, 1.15546260313], 1e-10),
    "scaled nearest neighbour": ("line", "nearest-neighbor", "scaled-consistent-surface", "",
        [0.986465617808, 1.23308202226, 1.97293123562, 1.04811971892], 1e-10),
    "scaled projection": ("line", "nearest-projection", "scaled-consistent-surface", "",
        [0.959962947692, 1.28775517373, 1.87309843452, 1.08288503246], 1e-10),
    "thin plate": ("grid", "rbf-global-direct", "consistent", "thin-plate-splines",
        [0.246419685723, 1.04261154204, 1.03952199688, 1.3066593635, 1.9021688038], 1e-10),
    "thin plate, integrated polynomial": ("grid", 'rbf-global-direct polynomial="on"', "consistent",
        "thin-plate-splines", [0.243951619333, 1.04420873922, 1.0347489743, 1.30556824948, 1.89736268249], 1e-10),
    "C0": ("grid", "rbf-global-direct", "consistent", 'compact-polynomial-c0 support-radius="0.8"',
        [0.247533801474, 1.03974095521, 1.02470576605, 1.30345451195, 1.87318681881], 1e-10),
    "C2": ("grid", "rbf-global-direct", "consistent", 'compact-polynomial-c2 support-radius="0.8"',
        [0.226481631495, 1.04922239364, 0.996507479342, 1.33048976342, 1.89641257926], 1e-10),
    "C4": ("grid", "rbf-global-direct", "consistent", 'compact-polynomial-c4 support-radius="0.8"',
        [0.223512708959, 1.04470157644, 0.991259011465, 1.32575137042, 1.90335248765], 1e-10),
    "C6": ("grid", "rbf-global-direct", "consistent", 'compact-polynomial-c6 support-radius="0.8"',
        [0.22200481111, 1.03732056396, 0.988660664457, 1.31564811214, 1.9098243308], 1e-10),
    "C6 by its short name": ("grid", "rbf", "consistent", 'compact-polynomial-c6 support-radius="0.8"',
        [0.22200481111, 1.03732056396, 0.988660664457, 1.31564811214, 1.9098243308], 1e-10),
    "C6 in one cluster": ("grid", "rbf-pum-direct", "consistent", 'compact-polynomial-c6 support-radius="0.8"',
        [0.22200481111, 1.03732056396, 0.988660664457, 1.31564811214, 1.9098243308], 1e-10),
    "C6 without polynomial": ("grid", 'rbf-global-direct polynomial="off"', "consistent",
        'compact-polynomial-c6 support-radius="0.8"',
        [0.199841774961, 0.975430281078, 1.08422294932, 1.35657584697, 2.038943701], 1e-10),
    "C8": ("grid", "rbf-global-direct", "consistent", 'compact-polynomial-c8 support-radius="0.8"',
        [0.222339223723, 1.02901937765, 0.987814802338, 1.3039518586, 1.91404141871], 1e-10),
    "compact thin plate": ("grid", "rbf-global-direct", "consistent", 'compact-tps-c2 support-radius="0.8"',
        [0.23891928238, 1.02957348228, 1.00523300061, 1.2983180221, 1.89274297058], 1e-10),
    "Gaussian by shape": ("grid", "rbf-global-direct", "consistent", 'gaussian shape-parameter="3"',
        [0.223565648764, 1.05241076646, 0.995970693423, 1.33549745607, 1.89830474283], 1e-10),
    "Gaussian by radius": ("grid", "rbf-global-direct", "consistent", 'gaussian support-radius="0.8"',
        [0.240464727288, 1.00331019816, 0.997568261462, 1.2638828432, 1.90824819205], 1e-10),
    "volume splines": ("grid", "rbf-global-direct", "consistent", "volume-splines",
        [0.255262155516, 1.03756775714, 1.03648715776, 1.29803416668, 1.87659252284], 1e-10),
    "multiquadrics": ("grid", "rbf-global-direct", "consistent", 'multiquadrics shape-parameter="1"',
        [0.242870077421, 1.04200670505, 1.05546915658, 1.29576371639, 1.90353811317], 1e-10),
    "inverse multiquadrics": ("grid", "rbf-global-direct", "consistent", 'inverse-multiquadrics shape-parameter="1"',
        [0.239250586503, 1.04472977301, 1.04458600719, 1.30282624182, 1.90112856817], 1e-10),
    "C6, conservative": ("grid", "rbf-global-direct", "conservative", 'compact-polynomial-c6 support-radius="0.8"',
        [0.787224831159, 2.92588590124, 3.87904160429, 3.34885598179, 5.27963442879], 1e-10),
    "thin plate, conservative": ("grid", "rbf-global-direct", "conservative", "thin-plate-splines",
        [-51.103054172, -267.346372185, 196.54107147, 328.838981865, -190.709984232], 1e-8),
}  # fmt: skip


def config(kind, constraint, basis):
    name = kind.split()[0]
    inside = f"<basis-function:{basis} />" if basis else ""
    return f"""<precice-configuration>
  <data:scalar name="T" />
  <mesh name="S" dimensions="2"><use-data name="T" /></mesh><mesh name="R" dimensions="2"><use-data name="T" /></mesh>
  <participant name="From">
    <provide-mesh name="S" /><receive-mesh name="R" from="To" /><write-data name="T" mesh="S" />
    <mapping:{kind} direction="write" from="S" to="R" constraint="{constraint}">{inside}</mapping:{name}>
  </participant>
  <participant name="To"><provide-mesh name="R" /><read-data name="T" mesh="R" /></participant>
  <m2n:sockets acceptor="From" connector="To" />
  <coupling-scheme:serial-explicit>
    <participants first="From" second="To" /><max-time-windows value="1" /><time-window-size value="1" />
    <exchange data="T" mesh="R" from="From" to="To" />
  </coupling-scheme:serial-explicit>
</precice-configuration>"""


def mapped(config_text, where, values=None):
    source, field, targets = (GRID, FIELD, TARGETS) if where == "grid" else (LINE, LINE_FIELD, LINE_TARGETS)
    field = field if values is None else values

    def sender(p):
        ids = p.set_mesh_vertices("S", source)
        if where == "line":
            p.set_mesh_edges("S", LINE_EDGES)
        elif p.requires_mesh_connectivity_for("S"):
            p.set_mesh_triangles("S", TRIANGLES)
        p.initialize()
        p.write_data("S", "T", ids, field)
        if p.requires_gradient_data_for("S", "T"):
            p.write_gradient_data("S", "T", ids, np.column_stack([2 * np.cos(2 * source[:, 0]), 2 * source[:, 1]]))
        p.advance(1.0)

    def receiver(p):
        ids = p.set_mesh_vertices("R", targets)
        if where == "line":
            p.set_mesh_edges("R", TARGET_EDGES)
        p.initialize()
        values = p.read_data("R", "T", ids, 1.0)
        p.advance(1.0)
        return values

    return couple(config_text, {"From": sender, "To": receiver})[0]["To"]


@pytest.mark.covers("PX-13")
@pytest.mark.parametrize("case", CASES)
def test_mapping_gives_the_values_measured(case):
    where, kind, constraint, basis, expected, rel = CASES[case]
    got = mapped(config(kind, constraint, basis), where)
    np.testing.assert_allclose(got, expected, rtol=0, atol=rel * np.abs(expected).max())
    if constraint == "conservative":
        total = FIELD.sum() if where == "grid" else LINE_FIELD.sum()
        assert got.sum() == pytest.approx(total, abs=1e-12 * np.abs(got).max())


#: A gradient of another field, no polynomial, or an integral that wins over the constant: constants change there.
KEEPS = [
    c for c, (_, kind, rule, *_) in CASES.items() if rule == "consistent" and "off" not in kind and c != "gradient"
]


@pytest.mark.covers("PX-13")
@pytest.mark.parametrize("case", KEEPS)
def test_constants_stay(case):
    where, kind, constraint, basis, expected, _ = CASES[case]
    got = mapped(config(kind, constraint, basis), where, np.ones(16 if where == "grid" else 5))
    np.testing.assert_allclose(got, np.ones(len(expected)), atol=1e-12)
