"""The order of the test files: the long ones first, so that both test processes end at about the same time.

Most of what takes long is compiling, and what one process has compiled the other finds on disk. So files that need the
same machine code stand apart from each other here. Takes effect with `--no-loadscope-reorder`, as in the Makefile.
"""

from pathlib import Path

import pytest

TESTS = Path(__file__).parent

LONG = (
    "multibody/mechanics/test_multibody_joints.py",
    "fmu/zoo/test_methods.py",
    "mapping/test_surface.py",
    "subsystem/test_jax_ode.py",
    "engine/native/test_same_bits.py",
    "multibody/joints/test_rigid.py",
    "sweeps/test_blocks.py",
    "crosscheck/test_crosscheck.py",
    "engine/native/test_step_control.py",
    "multibody/joints/test_flexible.py",
    "process/isolated/test_compiled.py",
    "process/isolated/test_failures.py",
    "engine/native/test_multibody.py",
    "sweeps/test_sweep.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {TESTS / name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.path, len(places)))
