"""Tests that may be skipped, and why. In the automatic run (`CI=true`) any other skip fails it.

A package that is missing from an environment would otherwise take whole files of tests with it, and the summary would
show no more than another number. So every run ends with what was skipped and why, wherever it runs.
"""

import os
from collections import defaultdict

import pytest

#: File, text that the reason contains, and what keeps the test from running everywhere.
ALLOWED = (
    (
        "tests/crosscheck/test_crosscheck.py",
        "libcosimpy",
        "a peer that nothing depends on, with wheels for few systems",
    ),
    ("tests/result/test_store.py", "root may write everywhere", "setpriv is a program of Linux"),
    ("tests/result/test_store.py", "other rights of files", "Windows"),
    ("tests/campaigns/test_samples.py", "need SPIN", "packages of the system cannot be installed everywhere"),
    ("tests/campaigns/test_samples.py", "only Linux tells who started whom", "Linux only"),
    ("tests/process/ranks/test_ranks.py", "MPI is missing", "wheels of MPI libraries are not for every system"),
    ("tests/process/ranks/test_ranks.py", "mpiexec cannot start processes", "some sandboxes allow no launchers"),
    ("tests/process/ranks/test_ranks.py", "signals", "Windows"),
    ("tests/viewer/test_browser.py", "no Chromium here", "packages of the system cannot be installed everywhere"),
    ("tests/viewer/test_notebooks.py", "no Chromium here", "packages of the system cannot be installed everywhere"),
    ("tests/viewer/test_notebooks.py", "COSOLVE_NOTEBOOKS names no Python", "two large packages for two tests"),
    ("tests/precice/test_teams.py", "MPI is missing", "wheels of MPI libraries are not for every system"),
    ("tests/precice/test_teams.py", "mpiexec cannot start processes", "some sandboxes allow no launchers"),
    ("tests/precice/test_other_hosts.py", "no network namespaces", "only root may make them, on Linux"),
    ("tests/precice/test_config.py", "names no folder", "public tutorials are not part of the repository"),
    ("tests/precice/test_tutorials.py", "names no folder", "public tutorials are not part of the repository"),
    ("tests/precice/test_tutorials.py", "no CMake", "tools of the system are not everywhere"),
    ("tests/precice/test_tutorials.py", "no LAPACK", "libraries of the system are not everywhere"),
    ("tests/precice/test_library.py", "no gfortran", "compilers of the system are not everywhere"),
    ("tests/precice/test_library.py", "no C++ compiler", "compilers of the system are not everywhere"),
    ("tests/precice/test_library.py", "no cmake", "tools of the system are not everywhere"),
    ("tests/precice/test_library.py", "no sanitiser library", "libraries of the system are not everywhere"),
    ("tests/fields/test_field_file.py", "no Python with VTK", "a wheel of 565 MB for one test"),
    ("tests/fields/test_field_file.py", "signals", "Windows"),
    ("tests/test_cli.py", "signals", "Windows"),
    ("tests/cli/test_progress.py", "pseudo-terminals", "Windows"),
    ("tests/cli/test_completion.py", "no bash", "Windows"),
    ("tests/cli/test_completion.py", "no zsh", "shells are not installed everywhere"),
    ("tests/cli/test_completion.py", "no fish", "shells are not installed everywhere"),
    ("tests/docs/test_site.py", "needs Sphinx", "the tools of the site are installed by make docs"),
    ("tests/crosscheck/test_crosscheck.py", "a script as a command", "Windows"),
    ("tests/jit/test_variadic.py", "ctypes cannot call variadic functions there", "macOS"),
    ("tests/fmu/zoo/test_release.py", "tells the memory of a process on Linux only", "Linux only"),
    ("tests/fields/test_openfoam.py", "no OpenFOAM here", "packages of the system, too big for the automatic run"),
    ("tests/fields/test_calculix.py", "no CalculiX here", "packages of the system cannot be installed everywhere"),
    ("tests/fields/test_turek_hron.py", "no CalculiX here", "packages of the system cannot be installed everywhere"),
    (
        "tests/fields/test_turek_hron.py",
        "no dolfinx here",
        "packages of the system cannot be installed everywhere",
    ),
    (
        "tests/fields/test_dolfinx_solid.py",
        "no dolfinx here",
        "packages of the system cannot be installed everywhere",
    ),
    ("tests/fields/test_dolfinx_solid.py", "signals", "Windows"),
    ("tests/fields/test_kratos.py", "no Kratos here", "an extra that brings a quarter of a gigabyte"),
    ("tests/fields/test_programs.py", "setpriv is missing", "Linux only"),
    ("tests/fields/test_programs.py", "scripts as programs", "Windows"),
    ("tests/fmu/zoo/test_python_fmus.py", "no valgrind", "packages of the system cannot be installed everywhere"),
    ("tests/io/fmu_export/test_c_hosts.py", "no valgrind", "packages of the system cannot be installed everywhere"),
    ("tests/io/fmu_export/test_c_hosts.py", "no shared library of Python", "interpreters may be linked as one file"),
    ("tests/sweeps/test_workers.py", "only Linux kills processes", "Linux only"),
)
#: Test or file, reason.
_skipped: dict[str, str] = {}


def is_allowed(path: str, reason: str) -> bool:
    """Whether a test of this file may be skipped for this reason."""
    return any(path == file and text in reason for file, text, _ in ALLOWED)


def _unknown() -> list[str]:
    return [f"{test}: {reason}" for test, reason in _skipped.items() if not is_allowed(test.partition("::")[0], reason)]


def _note(report: pytest.CollectReport | pytest.TestReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        _skipped[report.nodeid] = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    _note(report)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _note(report)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    worker = hasattr(session.config, "workerinput")  # of several, which all report to one
    if not worker and os.environ.get("CI") and exitstatus in (pytest.ExitCode.OK, 5) and _unknown():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was skipped: for each reason the number of tests, or of whole files, and where they are."""
    by_reason = defaultdict(list)
    for test, reason in _skipped.items():
        by_reason[reason.removeprefix("Skipped: ")].append(test)
    if by_reason:
        terminalreporter.section(f"skipped: {len(_skipped)}")
    for reason, tests in sorted(by_reason.items()):
        names = dict.fromkeys(test.partition("[")[0].removeprefix("tests/") for test in tests)
        terminalreporter.write_line(f"{len(tests):3d} {reason}: {', '.join(names)}")
    if os.environ.get("CI") and (unknown := _unknown()):
        terminalreporter.section("skipped, but not in the list of tests/skips.py", red=True)
        for line in unknown:
            terminalreporter.write_line(line)
