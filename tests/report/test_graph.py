"""The coupling graph as plain data: complete, writable as JSON, and part of every result."""

import json

import numpy as np

import cosolve as cs
from cosolve.interface.representation import graph


def mass(inputs=("f",)):
    B = np.vstack([np.zeros(len(inputs)), np.ones(len(inputs))])
    return cs.Linear([[0, 1], [-1, -0.1]], B, np.eye(2), x0=[1, 0], inputs=list(inputs), outputs=["x", "v"])


def every_kind_of_join():
    system = cs.System({"a": mass(), "b": mass(("f", "g", "h")), "c": mass()})
    system.connect("a.x", "b.f")
    system.law({"a.f": 1, "b.g": -2}, lambda x, y: y - x, of=["a.x", "b.x"], name="spring")
    system.equations({"lam": {"c.f": 1}}, lambda lam, v: lam + v, of=["c.v"])
    system.set("b.h", 0.25)
    return system


def test_every_kind_of_join_is_there():
    data = graph(every_kind_of_join())
    assert data["subsystems"][1] == {"name": "b", "kind": "Linear", "inputs": ["f", "g", "h"], "outputs": ["x", "v"]}
    assert data["edges"] == [
        {"kind": "connection", "label": "a.x", "sources": ["a.x"], "targets": ["b.f"], "factors": [1.0]},
        {
            "kind": "law",
            "label": "spring",
            "sources": ["a.x", "b.x"],
            "targets": ["a.f", "b.g"],
            "factors": [1.0, -2.0],
        },
        {"kind": "equations", "label": "lam", "sources": ["c.v"], "targets": ["c.f"], "factors": [1.0]},
        {"kind": "constant", "label": "0.25", "sources": [], "targets": ["b.h"], "factors": [1.0]},
    ]


def test_it_survives_json():
    data = graph(every_kind_of_join())
    assert json.loads(json.dumps(data)) == data


def test_a_result_carries_it():
    system = every_kind_of_join()
    result = cs.simulate(system, t_end=0.1, method=cs.SemiImplicit(), step=0.05)
    assert result.meta["graph"] == graph(system)
