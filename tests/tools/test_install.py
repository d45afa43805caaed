"""`make demo` tells how far the installation is."""

import sys

import pytest

from tools import install

PIP = [
    "Collecting numpy>=2.0 (from cosolve==0.1.0)\n",
    "Collecting scikit-sundae (from cosolve==0.1.0)\n",
    "Building editable for cosolve (pyproject.toml): started\n",
    "Installing collected packages: numpy, cosolve\n",
    "Successfully installed cosolve-0.1.0 numpy-2.1.0\n",
]
UV = ["Resolved 151 packages in 2.03s\n", "Prepared 151 packages in 9.21s\n", "Installed 151 packages in 1.10s\n"]


def test_stages_in_a_pipe_and_on_a_terminal(capsys):
    assert install.follow(PIP, terminal=False) == PIP
    assert [line.split("s  ")[1] for line in capsys.readouterr().out.splitlines()] == [
        "fetching numpy",  # the next within ten seconds is left out
        "installing 2 packages (this takes longest)",
    ]
    install.follow(PIP, terminal=True)
    assert capsys.readouterr().out.count("\r") == 5


def test_stages_of_uv_are_all_said(capsys):
    install.follow(UV, terminal=False)
    assert [line.split("s  ")[1] for line in capsys.readouterr().out.splitlines()] == [
        "fetching 151 packages",
        "installing 151 packages",
        "compiling 151 packages",
    ]


@pytest.fixture
def no_uv(monkeypatch):
    """uv fails, and whether it can be installed is not tried."""
    monkeypatch.setattr(install, "_UV", [sys.executable, "-c", "raise SystemExit('no such place')"])


def test_pip_is_taken_where_uv_fails_and_its_words_come_out(no_uv, monkeypatch, capfd):
    """Both fail here: the sentence of uv is one line, all that pip said comes out."""
    pip = "import sys; 'uv' in sys.argv or sys.exit('pip says: no ' + sys.argv[-1])"
    monkeypatch.setattr(install, "_PIP", [sys.executable, "-c", pip])
    assert install.main(["no-such-package"]) == 1
    said = capfd.readouterr().out
    assert "uv could not (no such place); pip does" in said
    assert "pip says: no no-such-package" in said
    assert "done" not in said


def test_pip_alone_is_enough(no_uv, monkeypatch, capfd):
    monkeypatch.setattr(install, "_PIP", [sys.executable, "-c", "print('Collecting it')"])
    assert install.main(["it"]) == 0
    assert capfd.readouterr().out.splitlines()[-1].endswith("done")
