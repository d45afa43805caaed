"""The page of a run that is watched: it stays as long as it is open, and the command says so."""

import pytest

from cosolve.cli.run import _until_closed


class Watched:
    """A page with so many who look at it; they leave, or Ctrl-C comes."""

    def __init__(self, watchers, interrupted):
        self.watchers, self.interrupted, self.done = watchers, interrupted, []

    def wait(self):
        self.done.append("waited")
        if self.interrupted:
            raise KeyboardInterrupt

    def close(self):
        self.done.append("closed")


@pytest.mark.parametrize("interrupted", [False, True])
@pytest.mark.parametrize(
    ("watchers", "quiet", "ended", "said"),
    [(2, False, False, True), (0, False, False, False), (2, True, False, False), (2, False, True, False)],
)
def test_the_page_stays_until_it_is_closed(watchers, quiet, ended, said, interrupted, capsys):
    page = Watched(watchers, interrupted)
    _until_closed(page, quiet, ended)
    assert page.done == (["closed"] if ended else ["waited", "closed"])
    assert capsys.readouterr().out == ("the page stays until it is closed, or Ctrl-C\n" if said else "")
