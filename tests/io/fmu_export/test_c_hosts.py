"""Exported FMUs in a host that is no Python: the interpreter begins with the FMU, and ends before its library does."""

import os
import re
import shutil
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from tests import processes
from tests.fmu.build import compiler

PYTHON = Path(sysconfig.get_config_var("LIBDIR") or "", sysconfig.get_config_var("INSTSONAME") or "none")
MODEL = """
import cosolve as cs


def tank():
    return cs.Ode(lambda t, x, u: -x, lambda t, x, u: x, x0=[1.0], inputs=[], outputs=["h"])
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux" or ".so" not in PYTHON.name, reason="no shared library of Python"),
]


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """The command of the host but for its last word, and its environment."""
    folder = tmp_path_factory.mktemp("host")
    (folder / "model.py").write_text(MODEL)
    options = {"cwd": folder, "env": processes.environment(), "check": True}
    processes.run([sys.executable, "-m", "cosolve.cli", "export", "model.py:tank", "tank.fmu"], **options)
    zipfile.ZipFile(folder / "tank.fmu").extractall(folder / "tank")
    program, source = folder / "host", Path(__file__).parent / "files" / "host.c"
    processes.run([*compiler(), str(source), "-o", str(program), "-ldl"], **options)
    guid = re.search('guid="([^"]+)"', (folder / "tank" / "modelDescription.xml").read_text())[1]
    (library,) = (folder / "tank" / "binaries" / "linux64").glob("*.so")
    found = os.pathsep.join(filter(None, sys.path))  # where cosolve is
    env = os.environ | {"LD_PRELOAD": str(PYTHON), "PYTHONPATH": found, "PYTHONHOME": sys.base_prefix}
    return [str(program), str(library), guid, (folder / "tank" / "resources").as_uri()], env


@pytest.mark.parametrize("end", ["keep", "close"])
def test_a_host_in_c_ends_well(host, end):
    command, env = host
    done = processes.run([*command, end], env=env, check=True)
    assert done.stdout.splitlines()[:2] == ["0", "0"]


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind")
@pytest.mark.parametrize("end", ["keep", "close"])
def test_nothing_freed_is_read_when_a_host_in_c_ends(host, end):
    """The destructor of the wrapper library released an interpreter that its static objects had released before."""
    command, env = host
    watched = ["valgrind", "--undef-value-errors=no", *command, end]
    done = processes.run(watched, env=env | {"PYTHONMALLOC": "malloc"}, limit=1500.0, check=True)
    assert "ERROR SUMMARY" in done.stderr
    assert "finalizePythonInterpreter" not in done.stderr
