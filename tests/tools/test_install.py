"""`make demo` tells how far the installation is."""

from tools import install

PIP = [
    "Collecting numpy>=2.0 (from cosolve==0.1.0)\n",
    "Collecting scikit-sundae (from cosolve==0.1.0)\n",
    "Building editable for cosolve (pyproject.toml): started\n",
    "Installing collected packages: numpy, cosolve\n",
    "Successfully installed cosolve-0.1.0 numpy-2.1.0\n",
]


def test_stages_in_a_pipe_and_on_a_terminal(capsys):
    assert install.follow(PIP, terminal=False) == PIP
    assert [line.split("s  ")[1] for line in capsys.readouterr().out.splitlines()] == [
        "fetching numpy",  # the next within ten seconds is left out
        "installing 2 packages (this takes longest)",
    ]
    install.follow(PIP, terminal=True)
    assert capsys.readouterr().out.count("\r") == 5


def test_what_pip_said_comes_out_when_it_fails(capfd):
    assert install.main(["--no-index", "no-such-package-for-sure"]) != 0
    assert "no-such-package-for-sure" in capfd.readouterr().out
