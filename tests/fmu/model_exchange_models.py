"""Model-exchange FMUs with events of every kind, for the tests beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.fmu.build import build
from tests.fmu.catalogue import ALL, MODELS, Model, Var, without

_ME = ("ModelExchange",)
_TIME = Var("time", 0, "independent")

EVENTS = {
    "sampled": Model(
        "sampled.c",
        (
            _TIME,
            Var("ts", 1, "parameter", start="0.1"),
            Var("k", 2, "parameter", start="2"),
            Var("x", 3, "output", start="1", initial="exact"),
            Var("der(x)", 4, derivative="x"),
            Var("u", 5, "input", start="0"),
            Var("held", 6, "output", variability="discrete"),
        ),
        flags=ALL,
        outputs={"x": "x", "held": ""},
        derivatives={"der(x)": "x"},
        kinds=_ME,
    ),
    "phase": Model(
        "phase.c",
        (
            _TIME,
            Var("x", 1, "output", start="0", initial="exact"),
            Var("der(x)", 2, derivative="x"),
            Var("u", 3, "input", start="0"),
            Var("turns", 4, "output", variability="discrete"),
        ),
        flags=ALL,
        outputs={"x": "x", "turns": ""},
        derivatives={"der(x)": "u"},
        kinds=_ME,
    ),
    "relay": Model(
        "relay.c",
        (
            _TIME,
            Var("eps", 1, "parameter", start="0.25"),
            Var("x", 2, "output", start="0", initial="exact"),
            Var("der(x)", 3, derivative="x"),
            Var("u", 4, "input", start="0"),
            Var("s", 5, "output", variability="discrete"),
            Var("z", 6),
        ),
        flags=ALL,
        outputs={"x": "x", "s": ""},
        derivatives={"der(x)": "u"},
        indicators=("z",),
        kinds=_ME,
    ),
    "spring_me": replace(MODELS["mass_spring"], kinds=_ME),
    "mass_me_no_rollback": replace(
        MODELS["mass_me"],
        flags=without("canGetAndSetFMUState", "canSerializeFMUState"),
        defines={"VARIANT": 0, "NO_STATE": 1},
    ),
}
_SWITCHES = (
    Var("u", 3, "input", start="0"),
    Var("on", 4, "input", "Boolean", start="true", variability="discrete"),
    Var("gain", 5, "input", "Int32", start="1", variability="discrete"),
    Var("y", 6, "output"),
    Var("changes", 7, "output", "Int32", variability="discrete"),
    Var("scale", 8, "parameter", start="1", variability="tunable"),
)
EVENTS["switched"] = Model(
    "switched.c",
    (_TIME, Var("x", 1, "output", start="0", initial="exact"), Var("der(x)", 2, derivative="x"), *_SWITCHES),
    flags=ALL,
    outputs={"x": "x", "y": "u gain", "changes": ""},
    derivatives={"der(x)": "u on gain"},
    kinds=_ME,
)
EVENTS["passing"] = Model(
    "switched.c",
    (_TIME, *_SWITCHES),
    flags=ALL,
    defines={"STATELESS": 1},
    outputs={"y": "u gain", "changes": ""},
    kinds=_ME,
)
EVENTS["vector"] = Model(
    "vector.c",
    (
        _TIME,
        Var("n", 1, "structuralParameter", "UInt64", start="3"),
        Var("u", 2, "input", start="0 0 0", dimensions="n"),
        Var("x", 3, "output", start="1 1 1", dimensions="n", initial="exact"),
        Var("der(x)", 4, derivative="x", dimensions="n"),
        Var("y", 5, "output", dimensions="n"),
    ),
    flags=ALL,
    outputs={"x": "x", "y": "x u"},
    derivatives={"der(x)": "x u"},
    kinds=_ME,
    versions=(3,),
)
EVENTS["sampled_no_rollback"] = replace(
    EVENTS["sampled"],
    flags=without("canGetAndSetFMUState", "canSerializeFMUState"),
    defines={"NO_STATE": 1},
    variables=tuple(v for v in EVENTS["sampled"].variables if v.name != "held"),
    outputs={"x": "x"},
)


def event_fmu(name: str, fmi: int) -> Path:
    """The FMU, built when first asked for."""
    return build(name, EVENTS[name], fmi)
