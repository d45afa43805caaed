"""States in files: whatever is allowed comes back the same, whatever is not is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import cosolve as cs
from cosolve.state.codec import from_bytes, to_bytes

NUMBERS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(max_size=40))
ARRAYS = hnp.arrays(
    st.sampled_from([np.float64, np.int64, np.bool_, np.complex128]), hnp.array_shapes(min_dims=0, max_side=3)
)
VALUES = st.recursive(
    st.one_of(NUMBERS, ARRAYS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.one_of(st.text(max_size=5), st.integers()), inner, max_size=4),
    ),
    max_leaves=12,
)


def same(a, b) -> bool:
    """Equal to the bit, types and containers included."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, float):
        return np.float64(a).tobytes() == np.float64(b).tobytes() or (a != a and b != b)
    return a == b


@settings(max_examples=30, deadline=None)
@given(VALUES)
def test_what_is_written_comes_back(value):
    data = to_bytes({"state": value})
    assert same(from_bytes(data)["state"], value)
    assert to_bytes({"state": value}) == data  # same state, same bytes


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, np.array([object()]), np.array(["text"]), lambda: 0, [cs.Port("x")]]
)
def test_anything_else_is_refused(value):
    with pytest.raises(cs.errors.SetupError, match="the state of 'box' cannot be written to a file"):
        to_bytes({"the state of 'box'": value})


def test_an_array_of_objects_in_a_file_is_not_read():
    """Arrays of objects would be pickles."""
    import io
    import json
    import zipfile

    array, buffer = io.BytesIO(), io.BytesIO()
    np.save(array, np.array([print], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("state.json", json.dumps({"format": "cosolve state 1", "tree": {"x": {"array": "0"}}}))
        file.writestr("0", array.getvalue())
    with pytest.raises(cs.errors.SetupError, match="damaged"):
        from_bytes(buffer.getvalue())
