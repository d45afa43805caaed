"""The application behind the page: who is let in, what it answers, and that nothing from a file is ever markup."""

import json
import struct
from http.client import HTTPConnection
from urllib.parse import urlsplit

import numpy as np
import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect
from tests.viewer.conftest import make_masses

import cosolve as cs
from cosolve.viewer.host import serve
from cosolve.viewer.result_view import ResultView
from cosolve.viewer.server import application
from cosolve.viewer.viewer_session import ViewerSession

HOST = "127.0.0.1:8765"


def client(session, **more):
    app = application(session, "secret", frozenset({HOST, "localhost:8765"}))
    return TestClient(app, base_url=f"http://{HOST}", **more)


@pytest.fixture
def page(result):
    return client(ViewerSession([ResultView(result, "run.h5")]))


def read(frame):
    (length,) = struct.unpack("<I", frame[:4])
    head = json.loads(frame[4 : 4 + length])
    numbers = np.frombuffer(frame[4 + length :], "<f8").reshape(-1, head["count"])
    return head, numbers


def test_page_script_and_style(page):
    for path, kind in (("", "text/html"), ("viewer.js", "text/javascript"), ("viewer.css", "text/css")):
        answer = page.get(f"/secret/{path}")
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith(kind)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy  # no inline script, no eval
        assert answer.headers["referrer-policy"] == "no-referrer"  # the token stays here
    assert page.get("/secret/../conftest.py").status_code in (403, 404)
    assert page.get("/secret/levels.py").status_code == 404


@pytest.mark.parametrize(
    "path", ["/", "/about", "/wrong/about", "/secre/about", "/secrets/about", "//about", "/s\u00e9cret/"]
)
def test_without_the_token_every_request_is_refused(page, path):
    answer = page.get(path)
    assert answer.status_code == 403
    assert "spring" not in answer.text


def test_the_server_says_little_and_takes_only_get(result):
    """Who looks from outside learns neither what serves the page nor its version, and no answer is kept."""
    shown = cs.view(result, open_browser=False, told=None)
    try:
        address = urlsplit(shown.address)
        link = HTTPConnection(address.hostname, address.port, timeout=60)
        for method, status in (("GET", 200), ("POST", 405), ("PUT", 405), ("DELETE", 405), ("TRACE", 405)):
            link.request(method, f"{address.path}about")
            answer = link.getresponse()
            answer.read()
            assert answer.status == status
            assert answer.headers["cache-control"] == "no-store"
            assert answer.headers["server"] is None
        link.close()
    finally:
        shown.close()


def test_other_names_and_other_pages_are_turned_away(page):
    """A page elsewhere may let its own name point to this computer: the Host header then tells."""
    assert page.get("/secret/about", headers={"Host": "evil.example:8765"}).status_code == 403
    assert page.get("/secret/about", headers={"Origin": "http://evil.example"}).status_code == 403
    assert page.get("/secret/about", headers={"Origin": f"http://{HOST}"}).status_code == 200
    assert page.get("/secret/about", headers={"Host": "localhost:8765"}).status_code == 200


def test_about(page):
    (found,) = page.get("/secret/about").json()["results"]
    assert found["label"] == "run.h5"
    assert found["verdict"] == {"level": "good", "headline": "Finished: reached t = 2.", "details": []}
    assert [s["name"] for s in found["signals"] if s["group"] == "outputs"] == ["one.x", "one.v", "two.x", "two.v"]
    (edge,) = found["coupling"]["edges"]
    assert edge["text"] == "spring = law(one.x, two.x) → one.f, −two.f"
    spring = next(s["id"] for s in found["signals"] if s["name"] == "spring")
    assert edge["signals"][0] == spring
    assert found["coupling"]["drawing"]["wires"][0]["edges"] == [0]


def test_series_are_the_numbers_of_the_result(page, result):
    signals = page.get("/secret/about").json()["results"][0]["signals"]
    one, two = (next(s["id"] for s in signals if s["name"] == name) for name in ("one.x", "two.x"))
    head, numbers = read(page.get(f"/secret/series?ids={one},{two}&t0=0&t1=2&n=5000").content)
    assert (head["raw"], head["signals"], head["rows"]) == (True, 2, 201)
    np.testing.assert_array_equal(numbers, [result.t, result["one.x"], result["two.x"]])
    head, few = read(page.get(f"/secret/series?ids={two}&t0=0&t1=2&n=20").content)
    assert not head["raw"]
    assert head["count"] <= 21
    assert (few[1].min(), few[2].max()) == (result["two.x"].min(), result["two.x"].max())


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("ids=0", 400),
        ("ids=x&t0=0&t1=1", 400),
        ("ids=0&t0=1&t1=0", 400),
        ("ids=0&t0=nan&t1=1", 400),
        ("ids=99999&t0=0&t1=1", 422),
        ("ids=-1&t0=0&t1=1", 422),
        ("ids=0&t0=0&t1=1&r=7", 422),
        ("ids=0&t0=0&t1=1&r=0&minus=3", 422),
    ],
)
def test_bad_questions_get_a_sentence(page, query, status):
    answer = page.get(f"/secret/series?{query}")
    assert answer.status_code == status
    assert answer.json()["problem"]


def test_no_answer_is_larger_than_a_screen_needs(page):
    head, _ = read(page.get("/secret/series?ids=0&t0=-1e300&t1=1e300&n=999999999").content)
    assert head["count"] == 201


def test_a_socket_only_for_a_run_and_only_for_the_page(page, result):
    for headers in ({}, {"Origin": "http://evil.example"}, {"Origin": f"http://{HOST}"}):
        with pytest.raises(WebSocketDisconnect), page.websocket_connect(f"ws://{HOST}/secret/live", headers=headers):
            pass  # the last one: there is no run


HOSTILE = "<script>alert(1)</script>\"'&</script><img src=x onerror=alert(2)>"


def test_hostile_names_travel_as_json_text_only(tmp_path):
    system = make_masses(HOSTILE.replace(".", ""))
    result = cs.simulate(system, t_end=0.1, method=cs.Jacobi(), step=0.01)
    page = client(ViewerSession([ResultView(result, HOSTILE)]))
    assert "alert" not in page.get("/secret/").text
    answer = page.get("/secret/about")
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.json()["results"][0]["label"] == HOSTILE


def test_a_file_that_was_cut(result, tmp_path):
    path = result.save(tmp_path / "run.h5")
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(cs.errors.OutputFileError, match=r"'.*run.h5' cannot be read"):
        cs.view(path, open_browser=False, told=None)


def test_a_file_that_is_cut_while_it_is_looked_at(result, tmp_path):
    path = result.save(tmp_path / "run.h5")
    page = client(ViewerSession([ResultView(cs.load_result(path), "run.h5")]))
    page.get("/secret/about")
    path.write_bytes(path.read_bytes()[:3000])
    answer = page.get("/secret/series?ids=0&t0=0&t1=1")
    assert answer.status_code == 422
    assert "run.h5" in answer.json()["problem"]


def test_a_result_of_another_version(result, tmp_path):
    import h5py

    path = result.save(tmp_path / "run.h5")
    with h5py.File(path, "r+") as file:
        outcome = json.loads(bytes(file["outcome"][:]))
        outcome["stats"]["counted_by_a_later_version"] = 3
        text = np.frombuffer(json.dumps(outcome).encode(), np.uint8)
        del file["outcome"]
        file["outcome"] = text
    assert cs.load_result(path).stats.steps == 200  # what it does not know is left out
    with h5py.File(path, "r+") as file:
        file.attrs["format"] = np.bytes_("cosolve result 9")
    with pytest.raises(cs.errors.OutputFileError, match=r"is a 'cosolve result 9', but this version reads"):
        cs.view(path, open_browser=False, told=None)


def test_a_port_in_use_is_said(result):
    with_port = cs.view(result, open_browser=False, told=None)
    try:
        port = int(with_port.address.split(":")[2].split("/")[0])
        with pytest.raises(cs.errors.SetupError, match=rf"port {port}: Address already in use; choose another port"):
            serve(ViewerSession(), port=port, open_browser=False, told=None)
    finally:
        with_port.close()


def test_without_a_browser_the_address_is_printed(result, monkeypatch):
    monkeypatch.setattr("webbrowser.open", lambda address: False)
    told = []
    page = cs.view(result, told=told.append)
    page.close()
    assert told == [f"view    {page.address}", "no browser was found here: open the address above yourself"]


@pytest.mark.parametrize("opens", [True, False])
def test_whether_a_browser_was_opened_is_known(monkeypatch, opens):
    """A live run waits a moment for a page that is coming, and for no other."""
    monkeypatch.setattr("webbrowser.open", lambda address: opens)
    page = serve(ViewerSession(), told=None)
    page.close()
    assert page.opened is opens


def test_waiting_for_the_page_to_be_closed_takes_no_processor_time(result, monkeypatch):
    """It sleeps in `join`, and looks again now and then, so that Ctrl-C is heard."""
    page, joined = cs.view(result, open_browser=False, told=None), []

    class Thread:
        def is_alive(self):
            assert len(joined) == looks.pop(0), "it looks again without having slept"
            return len(joined) < 3

        def join(self, timeout):
            joined.append(timeout)

    looks = [0, 1, 2, 3]
    with monkeypatch.context() as patch:
        patch.setattr(page, "_thread", Thread())
        page.wait()
    page.close()
    assert max(joined) <= 1.0


def test_every_page_has_its_own_token(result):
    pages = [cs.view(result, open_browser=False, told=None) for _ in range(2)]
    for page in pages:
        page.close()
    tokens = {page.address.split("/")[3] for page in pages}
    assert len(tokens) == 2
    assert all(len(token) >= 20 for token in tokens)


@pytest.mark.parametrize(
    ("shown", "said"), [((), "nothing to show"), ((3,), "not a int"), (("no.h5",), "there is no result file")]
)
def test_what_cannot_be_shown(shown, said):
    with pytest.raises(cs.CosolveError, match=said):
        cs.view(*shown, open_browser=False, told=None)


def test_a_result_that_was_cut_is_one_sentence(result, tmp_path):
    data = result.save(tmp_path / "run.h5").read_bytes()
    (tmp_path / "run.h5").write_bytes(data[: len(data) // 2])
    with pytest.raises(
        cs.errors.OutputFileError, match=r"^'[^']*run.h5' cannot be read: it was cut off after \d+ of \d+ bytes"
    ):
        cs.view(tmp_path / "run.h5", open_browser=False, told=None)
