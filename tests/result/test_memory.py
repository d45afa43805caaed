"""Rows in memory: blocks written in place, and columns that are the same in many rows."""

import pickle

import numpy as np
import pytest

from cosolve.result import Layout, Memory, Row

ROWS = 5000  # more than the first room


def block(memory: Memory, rows: int, start: float, *, in_place: bool, H: float = 0.1) -> None:
    """Add `rows` rows whose outputs count up from `start`, with equal steps `H`."""
    values = start + np.arange(2.0 * rows).reshape(rows, 2)
    buffers = memory.buffers(rows)
    y = buffers["y"] if in_place else np.empty((rows, 2))
    y[:] = values
    memory.extend(
        {
            "t": start + np.arange(rows),
            "y": y,
            "z": np.zeros((rows, 0)),
            "H": H,
            "iterations": 0,
            "residual": np.nan,
            "error": np.nan,
            "rejected": 0,
            "calls": np.array([1, 7]),
            "seconds": np.nan,
            "norms": np.zeros(0),
        }
    )


def row(t: float) -> Row:
    return Row(t, np.array([t, -t]), np.zeros(0), H=0.5, iterations=3, calls=np.array([2, 4]), seconds=np.ones(2))


@pytest.mark.parametrize("in_place", [True, False])
def test_blocks_between_rows(in_place):
    memory = Memory(Layout(2, 0, 2))
    memory.append(row(1.0))
    block(memory, ROWS, 10.0, in_place=in_place)
    block(memory, ROWS, 10.0 + 2 * ROWS, in_place=in_place, H=0.2)
    memory.append(row(2.0))
    columns = memory.columns()
    np.testing.assert_array_equal(columns["y"][1 : 2 * ROWS + 1].ravel(), 10.0 + np.arange(4.0 * ROWS))
    np.testing.assert_array_equal(columns["H"], [0.5] + [0.1] * ROWS + [0.2] * ROWS + [0.5])
    np.testing.assert_array_equal(columns["calls"], [[2, 4]] + [[1, 7]] * (2 * ROWS) + [[2, 4]])
    np.testing.assert_array_equal(columns["iterations"], [3] + [0] * (2 * ROWS) + [3])
    assert np.isnan(columns["seconds"][1:-1]).all()
    np.testing.assert_array_equal(columns["seconds"][[0, -1]], 1.0)


def test_rows_that_come_after_a_look():
    memory = Memory(Layout(2, 0, 2))
    block(memory, 3, 0.0, in_place=True)
    assert list(memory.columns()["H"]) == [0.1] * 3
    block(memory, ROWS, 6.0, in_place=True)  # grows, with values that were not read yet
    block(memory, ROWS, 6.0, in_place=True, H=0.3)
    np.testing.assert_array_equal(memory.columns()["H"], [0.1] * (3 + ROWS) + [0.3] * ROWS)


def test_equal_blocks_are_kept_as_one():
    memory = Memory(Layout(2, 0, 2))
    for k in range(100):
        block(memory, 10, float(k), in_place=True)
    assert [len(same) for same in memory._same.values()] == [0, 0, 0, *[1] * 8]


def test_cleared_rows_leave_nothing_behind():
    memory = Memory(Layout(2, 0, 2))
    block(memory, 10, 0.0, in_place=True, H=0.1)
    memory.clear()
    memory.append(row(1.0))
    assert list(memory.columns()["H"]) == [0.5]


def test_a_column_that_is_not_there():
    with pytest.raises(KeyError):
        Memory(Layout(1, 0, 1)).columns()["force"]


def test_results_can_be_copied():
    memory = Memory(Layout(2, 0, 2))
    block(memory, 10, 0.0, in_place=True)
    again = pickle.loads(pickle.dumps(memory))
    for name, column in memory.columns().items():
        np.testing.assert_array_equal(again.columns()[name], column)
