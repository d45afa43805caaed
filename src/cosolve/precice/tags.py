"""The tags of configuration files for solvers adapted to preCICE 3: which stand where, and the attributes they take.

A table, so that whatever it does not hold is refused by name and line and never ignored. An attribute is a kind (`text`,
`real`, `whole`, `flag`) and, where it may be missing, its default.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

REQUIRED: Final = object()


@dataclass(frozen=True)
class Attribute:
    """One attribute: its kind, its default (`REQUIRED` where there is none) and the values it may have."""

    kind: str
    default: Any = REQUIRED
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tag:
    """One tag: its attributes, what may stand inside, and the sentence with which it is refused, if it is."""

    attributes: dict[str, Attribute] = field(default_factory=dict)
    inside: tuple[str, ...] = ()
    refused: str = ""


def _text(default: Any = REQUIRED, *choices: str) -> Attribute:
    return Attribute("text", default, choices)


def _real(default: Any = REQUIRED) -> Attribute:
    return Attribute("real", default)


def _whole(default: Any = REQUIRED) -> Attribute:
    return Attribute("whole", default)


def _flag(default: Any = False) -> Attribute:
    return Attribute("flag", default)


_BASES: Final = {
    **{f"basis-function:compact-polynomial-c{k}": "support-radius" for k in (0, 2, 4, 6, 8)},
    "basis-function:compact-tps-c2": "support-radius",
    "basis-function:thin-plate-splines": "",
    "basis-function:volume-splines": "",
    "basis-function:multiquadrics": "shape-parameter",
    "basis-function:inverse-multiquadrics": "shape-parameter",
    "basis-function:gaussian": "",
}
_CONSTRAINTS = ("consistent", "conservative", "scaled-consistent-surface", "scaled-consistent-volume")
_MAPPING = {
    "direction": _text(REQUIRED, "read", "write"),
    "from": _text(""),
    "to": _text(""),
    "constraint": _text(REQUIRED, *_CONSTRAINTS),
    "timing": _text("initial"),
}
_RADIAL = {
    **_MAPPING,
    "polynomial": _text("separate", "separate", "on", "off"),
    **{f"{axis}-dead": _flag() for axis in "xyz"},
}
_PUM = {**_RADIAL, "vertices-per-cluster": _whole(50), "relative-overlap": _real(0.15), "project-to-input": _flag(True)}
_MEASURE = {"data": _text(), "mesh": _text(), "suffices": _flag(), "strict": _flag()}
_EXPORT = Tag(
    {
        "directory": _text("."),
        "every-n-time-windows": _whole(1),
        "every-iteration": _flag(),
        "update-series": _flag(),
        "normals": _flag(),
    }
)
_ACTION = {
    "mesh": _text(),
    "timing": _text("write-mapping-post", "write-mapping-post", "read-mapping-post"),
}
_QUASI_NEWTON = ("initial-relaxation", "max-used-iterations", "time-windows-reused", "acceleration/data", "filter",
                 "preconditioner")  # fmt: skip
_VALUE = Tag({"value": _real()})
_COUNT = Tag({"value": _whole()})
_SCHEME = ("max-time", "max-time-windows", "time-window-size", "exchange")
_ITERATED = (
    "max-iterations",
    "min-iterations",
    "absolute-convergence-measure",
    "relative-convergence-measure",
    "residual-relative-convergence-measure",
    "absolute-or-relative-convergence-measure",
    "acceleration:constant",
    "acceleration:aitken",
    "acceleration:IQN-ILS",
    "acceleration:IQN-IMVJ",
)
_SOCKETS = {
    "acceptor": _text(),
    "connector": _text(),
    "exchange-directory": _text(""),
    "network": _text(""),
    "port": _whole(0),
    "enforce-gather-scatter": _flag(),
    "use-two-level-initialization": _flag(),
}
_LATER = "is not offered yet"
_ROOT_INSIDE = (
    "log", "profiling", "data:scalar", "data:vector", "mesh", "participant", "m2n:sockets", "m2n:mpi",
    "m2n:mpi-multiple-ports", "m2n:mpi-singleports", "coupling-scheme:serial-explicit",
    "coupling-scheme:parallel-explicit", "coupling-scheme:serial-implicit", "coupling-scheme:parallel-implicit",
    "coupling-scheme:multi",
)  # fmt: skip
_MAPPINGS = (
    "mapping:nearest-neighbor", "mapping:nearest-projection", "mapping:nearest-neighbor-gradient",
    "mapping:linear-cell-interpolation", "mapping:rbf-global-direct", "mapping:rbf-global-iterative",
    "mapping:rbf-pum-direct", "mapping:rbf", "mapping:axial-geometric-multiscale",
    "mapping:radial-geometric-multiscale", "mapping:coarse-graining",
)  # fmt: skip
_DATA = Tag({"name": _text(), "waveform-degree": _whole(1), "lower-bound": _real(None), "upper-bound": _real(None)})

#: Every tag; one that has another meaning inside another tag stands as "outer/inner".
TAGS: Final[dict[str, Tag]] = {
    "precice-configuration": Tag(
        {
            "experimental": _flag(),
            "allow-remeshing": _flag(),
            "wait-in-finalize": _flag(),
        },
        _ROOT_INSIDE,
    ),
    "log": Tag({"enabled": _flag(True)}, ("sink",)),
    "sink": Tag(
        {
            "type": _text("stream"),
            "output": _text("stdout"),
            "filter": _text(""),
            "format": _text(""),
            "enabled": _flag(True),
        }
    ),
    "profiling": Tag(
        {
            "mode": _text("fundamental"),
            "flush-every": _whole(50),
            "directory": _text("."),
            "synchronize": _flag(),
        }
    ),
    "data:scalar": _DATA,
    "data:vector": _DATA,
    "mesh": Tag({"name": _text(), "dimensions": _whole()}, ("use-data",)),
    "use-data": Tag({"name": _text()}),
    "participant": Tag(
        {"name": _text()},
        ("provide-mesh", "receive-mesh", "write-data", "read-data", "watch-point", "watch-integral", "export:vtk",
         "export:vtu", "export:vtp", "export:csv", "action:multiply-by-area", "action:divide-by-area",
         "action:summation", "action:recorder", "action:python", "intra-comm:sockets", "intra-comm:mpi",
         "intra-comm:mpi-single", *_MAPPINGS),
    ),
    "provide-mesh": Tag({"name": _text()}),
    "receive-mesh": Tag(
        {
            "name": _text(),
            "from": _text(),
            "safety-factor": _real(0.5),
            "geometric-filter": _text("on-secondary-ranks"),
            "api-access": _flag(None),
            "direct-access": _flag(None),
        }
    ),
    "write-data": Tag({"name": _text(), "mesh": _text()}),
    "read-data": Tag({"name": _text(), "mesh": _text(), "waveform-degree": _whole(None)}),
    "watch-point": Tag({"name": _text(), "mesh": _text(), "coordinate": _text()}),
    "watch-integral": Tag({"name": _text(), "mesh": _text(), "scale-with-connectivity": _flag(None)}),
    **{f"export:{kind}": _EXPORT for kind in ("vtk", "vtu", "vtp", "csv")},
    **{f"action:{kind}-by-area": Tag(_ACTION, ("target-data",)) for kind in ("multiply", "divide")},
    "action:summation": Tag(_ACTION, ("source-data", "target-data")),
    "action:recorder": Tag(_ACTION, (), "records calls for tests only; remove the tag"),
    "action:python": Tag(
        _ACTION, ("path", "module", "source-data", "target-data"),
        "would run Python inside the coupling; compute it in the participant instead",
    ),  # fmt: skip
    "path": Tag({"name": _text("")}),
    "module": Tag({"name": _text("")}),
    "source-data": Tag({"name": _text()}),
    "target-data": Tag({"name": _text()}),
    "intra-comm:sockets": Tag({"network": _text(""), "port": _whole(0), "exchange-directory": _text("")}),
    "intra-comm:mpi": Tag(),
    "intra-comm:mpi-single": Tag(),
    **{f"mapping:{kind}": Tag(_MAPPING) for kind in
       ("nearest-neighbor", "nearest-projection", "nearest-neighbor-gradient", "linear-cell-interpolation")},
    "mapping:rbf-global-direct": Tag(_RADIAL, (*_BASES, "executor:cpu", "executor:openmp", "executor:cuda",
                                               "executor:hip")),
    "mapping:rbf-global-iterative": Tag(
        {**_RADIAL, "solver-rtol": _real(1e-9), "preallocation": _text("tree"), "max-iterations": _whole(0)},
        (*_BASES, "executor:cpu", "executor:openmp", "executor:cuda", "executor:hip"),
    ),
    "mapping:rbf-pum-direct": Tag(_PUM, (*_BASES, "executor:cpu", "executor:openmp", "executor:cuda",
                                         "executor:hip")),
    "mapping:rbf": Tag({**_RADIAL}, tuple(_BASES)),
    "mapping:axial-geometric-multiscale": Tag(refused=_LATER),
    "mapping:radial-geometric-multiscale": Tag(refused=_LATER),
    "mapping:coarse-graining": Tag(refused=_LATER),
    **{name: Tag({needs: _real()} if needs else {}) for name, needs in _BASES.items()},
    "basis-function:gaussian": Tag({"shape-parameter": _real(None), "support-radius": _real(None)}),
    "executor:cpu": Tag(),
    **{f"executor:{kind}": Tag({"gpu-device-id": _whole(0), "n-threads": _whole(0)}, (),
                               "asks for another processor; mappings are computed by the hub, remove the tag")
       for kind in ("openmp", "cuda", "hip")},
    **{f"m2n:{kind}": Tag(_SOCKETS) for kind in ("sockets", "mpi", "mpi-multiple-ports", "mpi-singleports")},
    **{f"coupling-scheme:{kind}-explicit": Tag({}, (*_SCHEME, "participants")) for kind in ("serial", "parallel")},
    **{f"coupling-scheme:{kind}-implicit": Tag({}, (*_SCHEME, *_ITERATED, "participants"))
       for kind in ("serial", "parallel")},
    "coupling-scheme:multi": Tag({}, (*_SCHEME, *_ITERATED, "coupling-scheme:multi/participant")),
    "coupling-scheme:multi/participant": Tag({"name": _text(), "control": _flag()}),
    "participants": Tag({"first": _text(), "second": _text()}),
    "max-time": _VALUE,
    "max-time-windows": _COUNT,
    "time-window-size": Tag({"value": _real(-1.0), "method": _text("fixed", "fixed", "first-participant")}),
    "exchange": Tag(
        {
            "data": _text(),
            "mesh": _text(),
            "from": _text(),
            "to": _text(),
            "initialize": _flag(),
            "substeps": _flag(None),
        }
    ),
    "max-iterations": _COUNT,
    "min-iterations": _COUNT,
    **{f"{kind}-convergence-measure": Tag({**_MEASURE, "limit": _real()})
       for kind in ("absolute", "relative", "residual-relative")},
    "absolute-or-relative-convergence-measure": Tag({**_MEASURE, "abs-limit": _real(), "rel-limit": _real()}),
    "acceleration:constant": Tag({}, ("relaxation",)),
    "relaxation": _VALUE,
    "acceleration:aitken": Tag({}, ("initial-relaxation", "acceleration/data", "preconditioner")),
    "acceleration:IQN-ILS": Tag(
        {"reduced-time-grid": _flag(True), "on-bound-violation": _text("ignore", "ignore", "clamp", "discard", "scale")},
        _QUASI_NEWTON,
    ),
    "acceleration:IQN-IMVJ": Tag(
        {"reduced-time-grid": _flag(True), "always-build-jacobian": _flag(),
         "on-bound-violation": _text("ignore", "ignore", "clamp", "discard", "scale")},
        (*_QUASI_NEWTON, "imvj-restart-mode"),
    ),
    "initial-relaxation": Tag({"value": _real(), "enforce": _flag()}),
    "max-used-iterations": _COUNT,
    "time-windows-reused": _COUNT,
    "acceleration/data": Tag({"name": _text(), "mesh": _text(), "scaling": _real(1.0)}),
    "filter": Tag({"type": _text("QR3", "QR1", "QR1-absolute", "QR2", "QR3"), "limit": _real(1e-2)}),
    "preconditioner": Tag(
        {"type": _text("residual-sum", "constant", "value", "residual", "residual-sum"), "freeze-after": _whole(-1),
         "update-on-threshold": _flag(True)}
    ),
    "imvj-restart-mode": Tag(
        {"type": _text("RS-SVD", "no-restart", "RS-0", "RS-LS", "RS-SVD", "RS-SLIDE"), "chunk-size": _whole(8),
         "reused-time-windows-at-restart": _whole(8), "truncation-threshold": _real(1e-4)}
    ),
}  # fmt: skip
