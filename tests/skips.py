"""Tests that may be skipped, and why. In the automatic run (`CI=true`) any other skip fails it.

A package that is missing from an environment would otherwise take whole files of tests with it, and nobody would see
more than another number in the summary. Elsewhere skips are as they always are.
"""

import os

import pytest

#: File, text that the reason contains, and what keeps the test from running everywhere.
ALLOWED = (
    (
        "tests/crosscheck/test_crosscheck.py",
        "libcosimpy",
        "a peer that nothing depends on, with wheels for few systems",
    ),
    ("tests/result/test_store.py", "root may write everywhere", "the automatic run may be root"),
    ("tests/campaigns/test_samples.py", "need SPIN", "packages of the system cannot be installed everywhere"),
    ("tests/campaigns/test_samples.py", "only Linux tells who started whom", "Linux only"),
    ("tests/ranks/test_ranks.py", "MPI is missing", "wheels of MPI libraries are not for every system"),
    ("tests/ranks/test_ranks.py", "mpiexec cannot start processes", "some sandboxes allow no launchers"),
    ("tests/ranks/test_ranks.py", "signals", "Windows"),
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
    ("tests/sweep/test_workers.py", "only Linux kills processes", "Linux only"),
)
_found: list[str] = []


def is_allowed(path: str, reason: str) -> bool:
    """Whether a test of this file may be skipped for this reason."""
    return any(path == file and text in reason for file, text, _ in ALLOWED)


def _note(report: pytest.CollectReport | pytest.TestReport) -> None:
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if not is_allowed(report.nodeid.partition("::")[0], reason):
        _found.append(f"{report.nodeid}: {reason}")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    _note(report)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _note(report)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    worker = hasattr(session.config, "workerinput")  # of several, which all report to one
    if _found and not worker and os.environ.get("CI") and exitstatus in (pytest.ExitCode.OK, 5):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _found and os.environ.get("CI"):
        terminalreporter.section("skipped, but not in the list of tests/skips.py", red=True)
        for line in dict.fromkeys(_found):
            terminalreporter.write_line(line)
