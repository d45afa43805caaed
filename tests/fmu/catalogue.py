"""The models of the test FMUs: their variables and what each FMU can do (flags by their FMI 3.0 names)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Var:
    """A variable; types by FMI 3.0 names, `derivative` names its state, `dimensions` a structural parameter."""

    name: str
    reference: int
    causality: str = "local"
    type: str = "Float64"
    start: str | None = None
    unit: str = ""
    nominal: str = ""
    variability: str = ""
    initial: str = ""
    derivative: str = ""
    dimensions: str = ""
    items: tuple[str, ...] = ()
    negated: bool = False  # FMI 1.0


@dataclass(frozen=True)
class Model:
    """A model file, its variables, and what its FMU can do."""

    source: str
    variables: tuple[Var, ...]
    flags: dict[str, object] = field(default_factory=dict)
    defines: dict[str, object] = field(default_factory=dict)
    #: outputs and derivatives -> what they depend on (None: not said); "+" before a name: constant dependency
    outputs: dict[str, str | None] = field(default_factory=dict)
    derivatives: dict[str, str | None] = field(default_factory=dict)
    #: what unknowns of the initialisation depend on, where that is said
    initial: dict[str, str] = field(default_factory=dict)
    indicators: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ("CoSimulation",)
    token: str = "{6f0c9f52-cosolve-tests}"
    versions: tuple[int, ...] = (2, 3)


ALL = {
    "canGetAndSetFMUState": "true",
    "canSerializeFMUState": "true",
    "providesDirectionalDerivatives": "true",
    "canHandleVariableCommunicationStepSize": "true",
    "canInterpolateInputs": "true",
    "maxOutputDerivativeOrder": 1,
    "providesAdjointDerivatives": "true",
    "providesIntermediateUpdate": "true",
    "recommendedIntermediateInputSmoothness": 5,
}


def without(*names: str) -> dict[str, object]:
    """All capabilities but these."""
    return {key: value for key, value in ALL.items() if key not in names}


def _mass(variant: int, inputs: tuple[tuple[str, str], ...], **changes: object) -> Model:
    drive = tuple(Var(name, 10 + i, "input", start="0", unit=unit) for i, (name, unit) in enumerate(inputs))
    names = " ".join(f"+{name}" for name, _ in inputs)
    force = (Var("F", 14, "output", unit="N", nominal="1000"),) if variant == 2 else ()
    model = Model(
        "mass.c",
        (
            Var("time", 0, "independent"),
            Var("m", 1, "parameter", start="1", unit="kg", variability="tunable"),
            Var("c", 2, "parameter", start="1e4", unit="N/m", variability="tunable"),
            Var("d", 3, "parameter", start="2", unit="N.s/m", variability="tunable"),
            Var("ck", 4, "parameter", start="1e6", unit="N/m", variability="tunable"),
            Var("dk", 5, "parameter", start="14.1421", unit="N.s/m", variability="tunable"),
            *force,
            Var("x", 6, "output", start="0", unit="m", initial="exact"),
            Var("v", 7, "output", start="0", unit="m/s", initial="exact"),
            Var("der(x)", 8, derivative="x", unit="m/s"),
            Var("der(v)", 9, derivative="v", unit="m/s2"),
            *drive,
            Var("fail_at", 15, "parameter", start="1e300", unit="s"),
            Var("failure", 16, "parameter", "Int32", start="0"),
        ),
        flags=ALL,
        defines={"VARIANT": variant, "LISTENS": 1},
        outputs={**({"F": f"+x +v {names}"} if force else {}), "x": "+x", "v": "+v"},
        derivatives={"der(x)": "+v", "der(v)": f"+x +v {names}"},
    )
    return replace(model, **changes)


FORCE, MOTION = (("f", "N"),), (("foreign_x", "m"), ("foreign_v", "m/s"))
SPRING = (("x1", "m"), ("v1", "m/s"))
LINK = (("left_x", "m"), ("left_v", "m/s"), ("right_x", "m"), ("right_v", "m/s"))
HELD = {"VARIANT": 0}


def _failing(kind: int, at: float = 0.05) -> Model:
    return _mass(0, FORCE, defines={"VARIANT": 0, "LISTENS": 1, "FAILS": kind, "FAILS_AT": at})


_PENDULUM = Model(
    "pendulum.c",
    (
        Var("time", 0, "independent"),
        Var("w", 1, "parameter", start="3", variability="tunable"),
        Var("d", 2, "parameter", start="0.2", variability="tunable"),
        Var("y", 8, "output", unit="rad", nominal="2"),
        Var("x", 3, "output", start="1", unit="rad", initial="exact"),
        Var("v", 4, start="0", initial="exact"),
        Var("der(x)", 5, derivative="x"),
        Var("der(v)", 6, derivative="v"),
        Var("u", 7, "input", start="0"),
    ),
    flags=ALL,
    defines={"LISTENS": 1},
    outputs={"y": "x u", "x": "x"},
    derivatives={"der(x)": "v", "der(v)": "x v u"},
)

MODELS: dict[str, Model] = {
    "mass_force": _mass(0, FORCE),
    "mass_motion": _mass(1, MOTION),
    "mass_spring": _mass(2, SPRING),
    "mass_link": _mass(3, LINK),
    "mass_held": _mass(0, FORCE, defines=HELD, flags=without("canInterpolateInputs", "providesIntermediateUpdate")),
    "mass_no_rollback": _mass(
        0,
        FORCE,
        flags=without("canGetAndSetFMUState", "canSerializeFMUState"),
        defines={"VARIANT": 0, "LISTENS": 1, "NO_STATE": 1},
    ),
    "mass_no_derivatives": _mass(
        0, FORCE, flags=without("providesDirectionalDerivatives", "providesAdjointDerivatives")
    ),
    "mass_unstructured": _mass(0, FORCE, derivatives={}, outputs={"x": None, "v": None}),
    "mass_discard": _failing(1),
    "mass_ends": _failing(8, 0.055),
    "mass_ends_me": replace(_failing(8, 0.055), kinds=("ModelExchange",)),
    "mass_too_long": _failing(9),
    "mass_stops": _failing(10, 0.055),
    "mass_error": _failing(2),
    "mass_fatal": _failing(3),
    "mass_crash": _failing(4),
    "mass_hang": _failing(5),
    "mass_warning": _failing(6, at=1e300),
    "mass_nan": _failing(7),
    "mass_me": _mass(0, FORCE, kinds=("ModelExchange",)),
    "mass_both": _mass(0, FORCE, kinds=("ModelExchange", "CoSimulation")),
    "pendulum": _PENDULUM,
    "pendulum_me": replace(_PENDULUM, kinds=("ModelExchange",)),
    "ball": Model(
        "ball.c",
        (
            Var("time", 0, "independent"),
            Var("g", 1, "parameter", start="9.81", unit="m/s2"),
            Var("e", 2, "parameter", start="0.7"),
            Var("x", 3, "output", start="1", unit="m", initial="exact"),
            Var("v", 4, "output", start="0", unit="m/s", initial="exact"),
            Var("der(x)", 5, derivative="x"),
            Var("der(v)", 6, derivative="v"),
            Var("push", 7, "input", start="0", unit="m/s2"),
            Var("bounces", 8, "output", "Int32", variability="discrete"),
            Var("rising", 9, "output", "Boolean", variability="discrete"),
            Var("z", 10),
        ),
        flags={
            **{key: ALL[key] for key in ("canGetAndSetFMUState", "canSerializeFMUState")},
            "canHandleVariableCommunicationStepSize": "true",
            "mightReturnEarlyFromDoStep": "true",
            "hasEventMode": "true",
        },
        outputs={"x": "x", "v": "v", "bounces": "", "rising": "v"},
        derivatives={"der(x)": "v", "der(v)": "push"},
        indicators=("z",),
    ),
    "array": Model(
        "array.c",
        (
            Var("time", 0, "independent"),
            Var("n", 1, "structuralParameter", "UInt64", start="3"),
            Var("k", 2, "parameter", start="1 2 3", dimensions="n", variability="fixed"),
            Var("u", 3, "input", start="0 0 0", dimensions="n"),
            Var("x", 4, "output", start="1 1 1", dimensions="n", initial="exact"),
            Var("der(x)", 5, derivative="x", dimensions="n"),
            Var("y", 6, "output", dimensions="n"),
        ),
        flags=without("canInterpolateInputs", "providesIntermediateUpdate", "maxOutputDerivativeOrder"),
        outputs={"x": "+x", "y": "+x"},
        derivatives={"der(x)": "+x +u"},
        versions=(3,),
    ),
    "types": Model(
        "types.c",
        (
            Var("time", 0, "independent"),
            Var("u", 1, "input", start="0"),
            Var("on", 2, "input", "Boolean", start="true", variability="discrete"),
            Var("gain", 3, "input", "Int32", start="1", variability="discrete"),
            Var("mode", 4, "input", "Enumeration", start="2", variability="discrete", items=("off", "slow", "fast")),
            Var("scale", 5, "parameter", start="1", variability="tunable"),
            Var("label", 1000, "parameter", "String", start="plain", variability="fixed"),
            Var("fine", 11, "parameter", "Boolean", start="true", variability="fixed"),
            Var("y", 6, "output", start="0", initial="exact"),
            Var("count", 7, "output", "Int32", variability="discrete"),
            Var("above", 8, "output", "Boolean", variability="discrete"),
            Var("state", 9, "output", "Enumeration", variability="discrete", items=("off", "slow", "fast")),
            Var("half", 10, "output", "Float32"),
            Var("message", 1001, "output", "String", variability="discrete"),
        ),
        flags={key: ALL[key] for key in ("canGetAndSetFMUState", "canHandleVariableCommunicationStepSize")},
        outputs=dict.fromkeys(("y", "count", "above", "half", "message"), "") | {"state": "mode"},
    ),
}
# declares event mode and then refuses it, as the FMI Reference FMU Roberts does
MODELS["ball_no_event_mode"] = replace(MODELS["ball"], defines={"REFUSES_EVENT_MODE": 1}, versions=(3,))
# leaves something behind in a global variable, so that no instance can follow in the same image of the library
MODELS["mass_once"] = replace(MODELS["mass_both"], defines={"VARIANT": 0, "LISTENS": 1, "ONCE_PER_LOAD": 1})
# resets its states in the first event iteration and asks for a second, in which nothing changes
MODELS["ball_iterates"] = replace(MODELS["ball"], kinds=("ModelExchange",), defines={"ITERATES": 1})
MODELS["ball_me"] = replace(MODELS["ball"], kinds=("ModelExchange",))
