"""Three participants: multi coupling with a controller, and schemes side by side (specification, 8.2)."""

import numpy as np
import pytest
from tests.precice.together import POINTS, D, K, couple, iterations

from cosolve.participants.client import ParticipantError

HEAD = """<precice-configuration>
  <data:scalar name="YA" /><data:scalar name="YB" /><data:scalar name="XA" /><data:scalar name="XB" />
  <mesh name="MA" dimensions="2"><use-data name="YA" /><use-data name="XA" /></mesh>
  <mesh name="MB" dimensions="2"><use-data name="YB" /><use-data name="XB" /></mesh>
  <mesh name="MC" dimensions="2"><use-data name="YA" /><use-data name="XA" />
    <use-data name="YB" /><use-data name="XB" /></mesh>
  <participant name="A"><provide-mesh name="MA" /><receive-mesh name="MC" from="C" />
    <write-data name="YA" mesh="MA" /><read-data name="XA" mesh="MA" />
    <mapping:nearest-neighbor direction="read" from="MC" to="MA" constraint="consistent" /></participant>
  <participant name="B"><provide-mesh name="MB" /><receive-mesh name="MC" from="C" />
    <write-data name="YB" mesh="MB" /><read-data name="XB" mesh="MB" />
    <mapping:nearest-neighbor direction="read" from="MC" to="MB" constraint="consistent" /></participant>
  <participant name="C"><provide-mesh name="MC" /><receive-mesh name="MA" from="A" /><receive-mesh name="MB" from="B" />
    <write-data name="XA" mesh="MC" /><write-data name="XB" mesh="MC" />
    <read-data name="YA" mesh="MC" /><read-data name="YB" mesh="MC" />
    <mapping:nearest-neighbor direction="read" from="MA" to="MC" constraint="consistent" />
    <mapping:nearest-neighbor direction="read" from="MB" to="MC" constraint="consistent" /></participant>
  <m2n:sockets acceptor="A" connector="C" /><m2n:sockets acceptor="B" connector="C" />
"""
FLOW = {"YA": ("MA", "A", "C"), "YB": ("MB", "B", "C"), "XA": ("MC", "C", "A"), "XB": ("MC", "C", "B")}


def exchange(name):
    mesh, sender, receiver = FLOW[name]
    return f'<exchange data="{name}" mesh="{mesh}" from="{sender}" to="{receiver}" />'


def scheme(kind, who, data, body="", window=0.1, windows=10):
    return f"""<coupling-scheme:{kind}>{who}<max-time-windows value="{windows}" />
    <time-window-size value="{window}" />{"".join(map(exchange, data))}{body}</coupling-scheme:{kind}>"""


def first(a, b):
    return f'<participants first="{a}" second="{b}" />'


def measured(*data):
    tags = (f'<relative-convergence-measure data="{d}" mesh="{FLOW[d][0]}" limit="1e-8" />' for d in data)
    return '<max-iterations value="100" />' + "".join(tags)


def solver(mesh, step, reads, writes, log=None):
    def run(p):
        ids = p.set_mesh_vertices(mesh, POINTS)
        p.initialize()
        t = saved = 0.0
        found = {}
        while p.is_coupling_ongoing():
            if p.requires_writing_checkpoint():
                saved = t
            dt = p.get_max_time_step_size()
            if log is not None:
                log.append(round(dt, 12))
            found = step(t + dt, *(p.read_data(mesh, name, ids, dt) for name in reads))
            for name in writes:
                p.write_data(mesh, name, ids, found[name])
            p.advance(dt)
            t += dt
            if p.requires_reading_checkpoint():
                t = saved
        return found

    return run


def three(log=None):
    return {
        "A": solver("MA", lambda t, x: {"YA": -0.6 / (1 + D) @ x + 1 + 0.1 * K + 0.5 * np.sin(3 * t)}, ["XA"], ["YA"]),
        "B": solver("MB", lambda t, x: {"YB": 0.7 * 0.5**D @ x + 0.2 * (K + 1) * np.cos(2 * t)}, ["XB"], ["YB"]),
        "C": solver(
            "MC",
            lambda t, a, b: {"XA": 0.5 * a + 0.3 * b + 0.1 * t * K, "XB": 0.3 * a - 0.6 * b - 0.1 * t * K},
            ["YA", "YB"],
            ["XA", "XB"],
            log,
        ),
    }


def values(got):
    return {**got["A"], **got["B"], **got["C"]}


def check(got, expected, rel):
    for name, row in expected.items():
        reference = np.array(row.split(), dtype=float)
        np.testing.assert_allclose(
            values(got)[name], reference, rtol=0, atol=rel * np.abs(reference).max(), err_msg=name
        )


@pytest.mark.covers("PX-11")
def test_multi_coupling_with_a_controller():
    who = '<participant name="A" /><participant name="B" /><participant name="C" control="true" />'
    listed = "".join(f'<data name="{d}" mesh="{FLOW[d][0]}" />' for d in FLOW)
    body = measured(*FLOW) + f"<acceleration:IQN-ILS>{listed}</acceleration:IQN-ILS>"
    got, coupling = couple(HEAD + scheme("multi", who, FLOW, body) + "</precice-configuration>", three())
    assert sum(iterations(coupling, "C")) <= 43
    check(got, {
        "YA": "0.583629671145 0.583566320448 0.62734520628 0.743830135695",
        "YB": "0.0614391484501 -0.0222583859867 -0.12670192022 -0.237088313317",
        "XA": "0.310246580107 0.385105644428 0.475662027074 0.600788573852",
        "XB": "0.138225412273 0.0884249277265 0.0642247140162 0.0654020286986",
    }, 1e-7)  # fmt: skip


def side_by_side(kind_a, kind_b, body="", **options):
    return (
        HEAD
        + scheme(kind_a, first("A", "C"), ["YA", "XA"], body, **options)
        + scheme(kind_b, first("C", "B"), ["XB", "YB"], **options)
        + "</precice-configuration>"
    )


@pytest.mark.covers("PX-12")
def test_two_serial_explicit_schemes():
    got, _ = couple(side_by_side("serial-explicit", "serial-explicit"), three())
    check(got, {
        "YA": "0.458565324135 0.437360363532 0.478484901582 0.611291743444",
        "YB": "0.179100586076 0.122601232651 0.0067316358162 -0.147142487847",
        "XA": "0.185877013306 0.237188890084 0.33186547379 0.492515716554",
        "XB": "0.224380894764 0.194190692423 0.158299424477 0.109647833369",
    }, 1e-9)  # fmt: skip


@pytest.mark.covers("PX-12")
def test_two_parallel_explicit_schemes():
    got, _ = couple(side_by_side("parallel-explicit", "parallel-explicit"), three())
    check(got, {
        "YA": "0.34682177012 0.309555616494 0.352030936048 0.502464612721",
        "YB": "-0.265711021424 -0.454419351764 -0.576435311268 -0.606971425119",
        "XA": "0.171889180597 0.207550450045 0.300942726019 0.475084843931",
        "XB": "0.264907731162 0.245003380199 0.213503771725 0.160636125736",
    }, 1e-9)  # fmt: skip


@pytest.mark.covers("PX-12")
def test_an_implicit_and_an_explicit_scheme():
    body = measured("YA", "XA") + "<acceleration:constant><relaxation value='0.5' /></acceleration:constant>"
    got, coupling = couple(side_by_side("serial-implicit", "serial-explicit", body), three())
    assert iterations(coupling, "C") == [20, 19, 18, 18, 18, 18, 18, 18, 17, 19]
    check(got, {
        "YA": "0.504174320506 0.486673302399 0.527616632624 0.656716252995",
        "YB": "-0.251863866159 -0.429839407879 -0.545811469573 -0.578300173825",
        "XA": "0.362898224729 0.458572797348 0.553210354665 0.669552250889",
        "XB": "-0.0703698327996 -0.184470301578 -0.220519086918 -0.185373372885",
    }, 1e-9)  # fmt: skip


@pytest.mark.covers("PX-12")
def test_windows_of_different_length_step_to_the_next_end():
    log = []
    text = (
        HEAD
        + scheme("parallel-explicit", first("A", "C"), ["YA", "XA"], window=0.2, windows=3)
        + scheme("parallel-explicit", first("C", "B"), ["XB", "YB"], window=0.3, windows=2)
        + "</precice-configuration>"
    )
    couple(text, three(log))
    assert log == [0.2, 0.1, 0.1, 0.2]


def test_serial_schemes_in_a_circle_are_told_apart_from_long_computations():
    """A waits for C, B for A, C for B: none would ever begin."""
    text = """<precice-configuration>
      <data:scalar name="P" /><data:scalar name="Q" /><data:scalar name="R" />"""
    ring = [("A", "B", "P"), ("B", "C", "Q"), ("C", "A", "R")]
    for one, _, data in ring:
        text += f"""<mesh name="M{one}" dimensions="2"><use-data name="{data}" /></mesh>"""
    for one, _, data in ring:
        sender, _, incoming = next(entry for entry in ring if entry[1] == one)
        text += f"""<participant name="{one}"><provide-mesh name="M{one}" /><write-data name="{data}" mesh="M{one}" />
          <receive-mesh name="M{sender}" from="{sender}" api-access="true" />
          <read-data name="{incoming}" mesh="M{sender}" /></participant>"""
    for one, other, data in ring:
        text += f"""<coupling-scheme:serial-explicit><participants first="{one}" second="{other}" />
          <max-time-windows value="2" /><time-window-size value="1" />
          <exchange data="{data}" mesh="M{one}" from="{one}" to="{other}" /></coupling-scheme:serial-explicit>"""
    text += "</precice-configuration>"

    def member(mesh):
        def run(p):
            p.set_mesh_vertices(mesh, POINTS)
            p.initialize()

        return run

    with pytest.raises(ParticipantError, match=r"all participants \('A', 'B', 'C'\) wait for each other at t = 0"):
        couple(text, {name: member(f"M{name}") for name in "ABC"})
