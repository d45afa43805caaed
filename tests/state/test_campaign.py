"""A small campaign of `kill -9`; the large one is a command, whose figures are in docs/validation/restart.md."""

import os

import pytest
from tests.state.campaign import KINDS, campaign


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_random_moments(tmp_path, kind):
    (counts,) = campaign((kind,), 3, seed=2, longest=4.0, folder=tmp_path).values()
    assert counts["kills"] == 3
    for harm in ("unreadable", "lost rows", "orphans", "segments", "different"):
        assert counts[harm] == 0, harm
