"""One table of joints serves joints inside a model and joints between subsystems."""

import numpy as np
import pytest

import cosolve as cs
from cosolve.multibody.equations.coupling_loads import Attachment
from cosolve.multibody.model.arrays import PERPENDICULAR, PLANE
from cosolve.multibody.model.joints import JOINTS, KINDS

UPRIGHT = np.array([0, 0, 0, 1.0, 0, 0, 0, 0, 0, 0, 0, 0, 0])


@pytest.mark.parametrize("kind", KINDS)
def test_as_many_conditions_between_subsystems_as_inside_a_model(kind):
    labels = cs.multibody.Joint(kind, "one.a", "two.b").labels()
    assert len(labels) == len(set(labels))
    if kind in JOINTS:
        assert len(labels) == len(JOINTS[kind])


@pytest.mark.parametrize("kind", JOINTS)
def test_without_axes_the_same_axes_of_the_markers_count(kind):
    # markers with the axes of K0: the directions of a joint between subsystems are those that the rows name
    joint, here = cs.multibody.Joint(kind, "one.a", "two.b"), Attachment("body", np.zeros(3), np.eye(3), UPRIGHT)
    parts = [part for part in joint.parts(here, here) if part.code in (PLANE, PERPENDICULAR)]
    rows = [row for row in JOINTS[kind] if row.kind in (PLANE, PERPENDICULAR)]
    assert [part.code for part in parts] == [row.kind for row in rows]
    for part, row in zip(parts, rows, strict=True):
        assert part.e_j.tolist() == np.eye(3)[row.second].tolist()
        if row.kind == PERPENDICULAR:
            assert part.e_i.tolist() == np.eye(3)[row.first].tolist()
