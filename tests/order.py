"""The order of the test files: the long ones first, so that both test processes end at about the same time.

Most of what takes long is compiling, and what one process has compiled the other finds on disk. So files that need the
same machine code stand apart from each other here. Takes effect with `--no-loadscope-reorder`, as in the Makefile.
"""

from pathlib import Path

import pytest

TESTS = Path(__file__).parent

LONG = (
    "mechanics/test_multibody_joints.py",
    "fmu/zoo/test_methods.py",
    "interface/mapping/test_surface.py",
    "subsystem/test_jax_ode.py",
    "compiled/test_same_bits.py",
    "joints/test_rigid.py",
    "sweep/test_blocks.py",
    "crosscheck/test_crosscheck.py",
    "compiled/test_step_control.py",
    "joints/test_flexible.py",
    "isolated/test_compiled.py",
    "isolated/test_failures.py",
    "compiled/test_multibody.py",
    "sweep/test_sweep.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {TESTS / name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.path, len(places)))
