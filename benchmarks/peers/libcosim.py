"""libcosim through libcosimpy: its fixed-step algorithm (Jacobi), steps in one call."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from libcosimpy.CosimExecution import CosimExecution
from libcosimpy.CosimLogging import CosimLogLevel, log_output_level
from libcosimpy.CosimObserver import CosimObserver
from libcosimpy.CosimSlave import CosimLocalSlave
from serve import serve


def jacobi(built: dict[str, Any], steps: int, H: float) -> dict[str, Any]:
    """Force/displacement with an observer that keeps the last values."""
    log_output_level(CosimLogLevel.ERROR)
    execution = CosimExecution.from_step_size(step_size=round(H * 1e9))
    one = execution.add_local_slave(CosimLocalSlave(fmu_path=built["fmus"]["mass_force"], instance_name="one"))
    two = execution.add_local_slave(CosimLocalSlave(fmu_path=built["fmus"]["mass_spring"], instance_name="two"))
    for out_slave, out, in_slave, into in ((one, 6, two, 8), (one, 7, two, 9), (two, 10, one, 8)):
        if execution.connect_real_variables(out_slave, out, in_slave, into) < 0:
            raise RuntimeError("a connection was refused")
    observer = CosimObserver.create_last_value()
    execution.add_observer(observer)
    execution.step()  # initialises, too
    began = perf_counter()
    if not execution.step(step_count=steps - 1):
        raise RuntimeError("a step failed")
    seconds = perf_counter() - began
    answer = [*observer.last_real_values(one, [6, 7]), *observer.last_real_values(two, [6, 7])]
    return {"seconds": seconds / (steps - 1), "answer": [float(v) for v in answer]}


if __name__ == "__main__":
    serve({"jacobi": jacobi}, "libcosimpy")
