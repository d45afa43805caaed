"""Two result files of the same run: equal in every bit, but for what was measured in seconds."""

import json
from pathlib import Path

import h5py
import numpy as np

MEASURED = {"wall_seconds", "compiled_seconds", "loading_seconds", "seconds", "overruns", "max_lateness"} | {
    "python_reason"
}
RESUMED = "was not looked at: the run goes on from a saved state"


def differences(one: Path, other: Path, compiled_alike: bool = True) -> list[str]:
    """What differs, column by column and total by total."""
    found = []
    with h5py.File(one) as a, h5py.File(other) as b:
        names = sorted({*a, *b})
        for name in names:
            if name in ("seconds", "about", "outcome"):
                continue
            x, y = (file[name][()] if name in file else None for file in (a, b))
            if name == "rows" or x is None or y is None:
                same = x == y
            else:
                same = x.shape == y.shape and (x.dtype.kind == "O" or x.tobytes() == y.tobytes())
            if not same:
                found.append(f"{name}: {np.shape(x)} {np.shape(y)}")
        if (a["seconds"].shape) != (b["seconds"].shape):
            found.append("seconds")
        said = [json.loads(bytes(file["outcome"][:])) for file in (a, b)]
        abouts = [json.loads(file["about"].asstr()[()]) for file in (a, b)]
    for each in abouts:  # a run that is to be resumed was given fewer steps
        each["meta"].get("changes", {}).pop("max_steps", None)
    if abouts[0] != abouts[1]:
        found.append("about")
    stats = [{k: v for k, v in each["stats"].items() if k not in MEASURED} for each in said]
    for each in stats:  # what came before a saved state cannot be looked at again, which a run that goes on says
        each["diagnoses"] = [note for note in each["diagnoses"] if RESUMED not in str(note)]
    for key in stats[0]:
        if key == "compiled_steps" and not compiled_alike:
            continue
        if repr(stats[0][key]) != repr(stats[1][key]):  # NaN is NaN here
            found.append(f"stats.{key}: {stats[0][key]!r} {stats[1][key]!r}")
    if said[0]["error"] != said[1]["error"]:
        found.append(f"error: {said[0]['error']} {said[1]['error']}")
    return found
