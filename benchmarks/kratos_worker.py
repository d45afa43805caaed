"""A convergence accelerator of Kratos behind a pipe: one JSON request per line in, one answer per line out.

Runs in the environment that `kratos.py` makes; it needs Kratos and numpy, nothing of cosolve. Requests are
`{"do": "create", "settings": {...}}`, then per step `begin`, any number of `{"do": "update", "x": [...], "r": [...]}`
with Kratos' residual `r = x~ - x`, and `end`: the calls of its strongly coupled Gauss-Seidel solver, in its order.
"""

from __future__ import annotations

import importlib
import json
import os
import sys

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # the banner of Kratos goes elsewhere

import KratosMultiphysics as KM  # noqa: E402
import numpy as np  # noqa: E402

FOLDER = "KratosMultiphysics.CoSimulationApplication.convergence_accelerators."


def update(accelerator, x: list[float], r: list[float]) -> list[float]:
    """The change of `x`; NaN where the linear algebra of the accelerator gave up."""
    accelerator.InitializeNonLinearIteration()
    try:
        change = np.asarray(accelerator.UpdateSolution(np.array(r), np.array(x)))
    except np.linalg.LinAlgError:
        change = np.full(len(x), np.nan)
    accelerator.FinalizeNonLinearIteration()
    return change.tolist()


def main() -> None:
    accelerator = None
    for line in sys.stdin:
        request = json.loads(line)
        answer = None
        match request["do"]:
            case "version":
                answer = {"kratos": KM.KratosGlobals.Kernel.Version(), "numpy": np.__version__}
            case "create":
                module = importlib.import_module(FOLDER + request["settings"]["type"])
                accelerator = module.Create(KM.Parameters(json.dumps(request["settings"])))
                accelerator.Initialize()
            case "begin":
                accelerator.InitializeSolutionStep()
            case "update":
                answer = update(accelerator, request["x"], request["r"])
            case "end":
                accelerator.FinalizeSolutionStep()
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
