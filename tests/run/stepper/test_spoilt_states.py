"""Saved states that were damaged or changed by hand: refused before a run goes on from them."""

import json

import pytest
from campaigns.mutated import repacked
from tests.run.stepper.models import stepper, trace

import cosolve as cs
from cosolve.state.codec import _digest


@pytest.fixture
def saved(tmp_path):
    """A run that stands in the middle, its state as a file, and the file's content."""
    running = stepper("semi-implicit")
    for _ in range(3):
        running.step()
    file = running.save_file(tmp_path / "run.state")
    return running, file, file.read_bytes()


def edited(whole, change, digest="old"):
    """The state with another tree: with the digest it had, a new one, or none as older versions wrote it."""

    def edit(name, content):
        if name != "state.json":
            return content
        read = json.loads(content)
        change(read["tree"])
        if digest == "none":
            del read["digest"]
        if digest == "new":
            read["digest"] = _digest(read["tree"], attached)
        return json.dumps(read).encode()

    attached = {}
    repacked(whole, lambda name, content: attached.setdefault(name, content))
    attached.pop("state.json")
    return repacked(whole, edit)


def refusal(running, file, data) -> str:
    file.write_bytes(data)
    with pytest.raises(cs.errors.SetupError) as refused:
        running.restore_file(file)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_changed_number_is_noticed(saved):
    running, file, whole = saved
    said = refusal(running, file, edited(whole, lambda tree: tree.update(t=0.1)))
    assert "changed after it was written" in said
    assert "run.state" in said


def test_a_changed_array_is_noticed(saved):
    running, file, whole = saved
    spoilt = repacked(whole, lambda name, data: data[:-1] + b"\x40" if name == "0" else data)
    assert "changed after it was written" in refusal(running, file, spoilt)


def test_states_of_older_versions_are_read(saved):
    running, file, whole = saved
    expected = trace(running, 0.4)
    file.write_bytes(edited(whole, lambda tree: None, digest="none"))
    running.restore_file(file)
    assert trace(running, 0.4) == expected


@pytest.mark.parametrize("digest", ["new", "none"])
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda tree: tree.pop("t"), "not the saved state of a run"),
        (lambda tree: tree.update(t="soon"), "its t is a str"),
        (lambda tree: tree.update(y=None), "its y is a NoneType"),
        (lambda tree: tree.update(y=tree["z"]), "its y has 1 numbers, not 4"),
        (lambda tree: tree.update(history=[]), "its history is a list"),
        (lambda tree: tree.update(description=3), "not the saved state of a run"),
        (lambda tree: tree.update(description={"dict": [["subsystems", 3]]}), "not the saved state of a run"),
        (lambda tree: tree.update(more=3), "not the saved state of a run"),
        (lambda tree: tree.update({"the state of 'one'": 3}), "a state in it is not one of a subsystem"),
        (lambda tree: tree.update({"the state of 'one'": {"tuple": [{"array": "0"}, 3]}}), "not one of a subsystem"),
        (lambda tree: tree.update(windows={"dict": []}), "does not fit this run"),
        (lambda tree: tree.update(y={"array": "99"}), "is no saved state, or a damaged one"),
        (lambda tree: tree.update(y={"object": "os:system", "state": "ls"}), "class 'os:system'"),
    ],
)
def test_what_does_not_fit_is_refused(saved, change, sentence, digest):
    running, file, whole = saved
    assert sentence in refusal(running, file, edited(whole, change, digest))
    file.write_bytes(whole)
    running.restore_file(file)  # and the run is none the worse
    running.step()


def test_damaged_bytes(saved):
    """Each of these meets another part of the reader: the zip's list, its checksums, inflating, JSON."""
    running, file, whole = saved
    head = whole.index(b"PK\x01\x02")
    for spoilt in (
        whole[:head],
        whole[:60] + b"\xff" * 40 + whole[100:],
        whole[: head + 8] + b"\x01" + whole[head + 9 :],  # says that it is encrypted
        whole[: head + 10] + b"\x63" + whole[head + 11 :],  # an unknown way of packing
        repacked(whole, lambda name, data: data[:50] if name == "state.json" else data),
        repacked(whole, lambda name, data: b"[" * 100_000 if name == "state.json" else data),
        repacked(whole, lambda name, data: b"[1]" if name == "state.json" else data),
        b"",
    ):
        assert "no saved state, or a damaged one" in refusal(running, file, spoilt)
