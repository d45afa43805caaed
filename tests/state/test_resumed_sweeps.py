"""A sweep that was ended runs only what is missing when it is called again, and gives the same numbers."""

import pytest
from tests.sweeps.models import oscillator, pendulum

import cosolve as cs

ONE_BY_ONE = {
    "build": pendulum,
    "parameters": {"length": [1.0, 2.0, 3.0, 4.0]},
    "methods": [cs.Jacobi(1), cs.Jacobi(0)],
    "steps": [0.01, 0.02],
    "t_end": 0.1,
    "record": "rod.x",
}
IN_BLOCKS = {
    "build": oscillator,
    "parameters": {"ck": [1e3, 2e3, 3e3], "dk": [1.0, 2.0]},
    "methods": [cs.Jacobi(1), cs.SemiImplicit(1)],
    "steps": 0.001,
    "t_end": 0.05,
}


@pytest.mark.parametrize("what", [ONE_BY_ONE, IN_BLOCKS], ids=["one by one", "in blocks"])
def test_a_cut_file_is_completed(tmp_path, what):
    file, whole = tmp_path / "cases.sweep", cs.sweep(**what)
    runs = whole["error"].size
    assert cs.sweep(**what, save=file).drop_attrs().identical(whole.drop_attrs())
    data = file.read_bytes()
    for end in (0, 7, 40, len(data) // 2, len(data) - 1):  # in the head, in the first record, between and in others
        file.write_bytes(data[:end])
        found = cs.sweep(**what, save=file)
        assert found.drop_attrs().identical(whole.drop_attrs())
        assert file.stat().st_size <= len(data) + 4000  # two groups of cases instead of one, at most
        assert cs.sweep(**what, save=file).attrs["how"] == f"{runs} runs were in 'cases.sweep' already"
    assert [path.name for path in tmp_path.iterdir()] == ["cases.sweep"]


SEEN: list[float] = []


def end(result):
    SEEN.append(float(result["rod.x"][0]))
    return result["rod.x"][-1]


def broken(length):
    if length == 2.0:
        raise ValueError("no such pendulum")
    return pendulum(length)


def test_only_missing_cases_are_run(tmp_path):
    """Failed ones count as finished."""
    run = {"methods": cs.Jacobi(1), "steps": 0.01, "t_end": 0.05, "reduce": end, "executor": "serial"}
    lengths = {"length": [1.0, 2.0, 3.0, 4.0]}
    whole = cs.sweep(broken, lengths, **run)
    SEEN.clear()

    def stop(fraction):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cs.sweep(broken, lengths, **run, save=tmp_path / "cases", progress=stop)
    assert len(SEEN) == 1
    for _ in range(2):
        again = cs.sweep(broken, lengths, **run, save=tmp_path / "cases")
        assert len(SEEN) == 3  # each of those that work once, in any worker
        assert again.drop_attrs().identical(whole.drop_attrs())
    assert "no such pendulum" in str(cs.failed_runs(again)[0])


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"parameters": {"length": [1.0, 2.0, 3.0, 5.0]}}, "parameters"),
        ({"methods": [cs.Jacobi(1), cs.Jacobi(2)]}, "methods"),
        ({"steps": [0.01, 0.005]}, "steps"),
        ({"t_end": 0.2}, "time"),
        ({"build": lambda length: pendulum(2 * length)}, "build"),
        ({"reduce": "max"}, "reduce"),
        ({"record": "rod.f"}, "record"),
    ],
)
def test_another_sweep_is_refused(tmp_path, change, what):
    cs.sweep(**ONE_BY_ONE, save=tmp_path / "cases")
    before = (tmp_path / "cases").read_bytes()
    with pytest.raises(cs.errors.SetupError, match=f"holds cases of another sweep \\(its {what} differs\\)"):
        cs.sweep(**(ONE_BY_ONE | change), save=tmp_path / "cases")
    assert (tmp_path / "cases").read_bytes() == before


def test_other_files_are_refused(tmp_path):
    file = tmp_path / "cases"
    for content, sentence in (
        (b"once upon a time\n", "is no file of a sweep"),
        (b"\0" * 500 + b"1", "is no file of a sweep"),
        (b"cosolve sweep 2\n", "has format 2, written by another version of cosolve; this one reads format 1"),
        (b"cosolve sweep 1\n" + b"\x04" + b"\0" * 30 + b"a case", "is damaged at its beginning"),
    ):
        file.write_bytes(content)
        with pytest.raises(cs.errors.SetupError, match=sentence):
            cs.sweep(**ONE_BY_ONE, save=file)
        assert file.read_bytes() == content
    with pytest.raises(cs.errors.OutputFileError, match="cannot be written"):
        cs.sweep(**ONE_BY_ONE, save=tmp_path / "nowhere" / "cases")


def test_a_spoilt_record_costs_the_cases_after_it(tmp_path):
    whole = cs.sweep(**ONE_BY_ONE, save=tmp_path / "cases")
    data = bytearray((tmp_path / "cases").read_bytes())
    data[len(data) // 2] ^= 0xFF
    (tmp_path / "cases").write_bytes(data)
    again = cs.sweep(**ONE_BY_ONE, save=tmp_path / "cases")
    assert again.drop_attrs().identical(whole.drop_attrs())
    assert "already; " in again.attrs["how"]
