"""A real browser for tests: Chromium of the system, driven by Playwright. Whatever its pages complain of counts."""

import shutil
from time import monotonic, sleep

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

#: Chromium must draw without a graphics card and must not look for its maker.
FLAGS = [
    *("--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-sync"),
    *("--disable-component-update", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"),
]
PATIENCE = 60_000  # milliseconds: the machine may be busy

#: What a page says whose server ends while it asks.
ENDED = [
    f"net::ERR_{what}" for what in ("CONNECTION_REFUSED", "CONNECTION_RESET", "CONNECTION_CLOSED", "EMPTY_RESPONSE")
]

_open: list["Tabs"] = []


def leave():
    """Close all pages of a test, before the server that they may be asking ends."""
    for tabs in _open:
        tabs.leave()


def errors_of(page):
    """A list that fills with what goes wrong on a page: errors of its scripts, errors on its console, dialogs."""
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("dialog", lambda dialog: (errors.append("a dialog"), dialog.dismiss()))
    page.on("console", lambda message: message.type == "error" and errors.append(f"{message.text} {message.location}"))
    return errors


class Tabs:
    """Opens pages: `tabs(address)`. What one of them complains of fails the test, unless it was allowed before."""

    def __init__(self, browser):
        self._context = browser.new_context(viewport={"width": 1200, "height": 800})
        self._lists, self._allowed = [], []
        _open.append(self)

    def __call__(self, address, viewport=None):
        page = self._context.new_page()
        page.set_default_timeout(PATIENCE)
        if viewport is not None:
            page.set_viewport_size(viewport)
        self._lists.append(errors_of(page))
        page.goto(address)
        return page

    def allow(self, *texts):
        """Complaints that contain one of these are expected in this test."""
        self._allowed += texts

    def leave(self):
        """Close all pages."""
        for page in self._context.pages:
            page.close()

    def close(self):
        """Close all pages, and fail where one has complained."""
        _open.remove(self)
        self._context.close()
        errors = [error for one in self._lists for error in one]
        complaints = [error for error in errors if not any(text in error for text in self._allowed)]
        assert not complaints, "\n".join(complaints)


def wait(page, question):
    """Until an expression is true; the page itself must not evaluate texts, so Playwright's own waiting cannot."""
    end = monotonic() + PATIENCE / 1000
    while not page.evaluate(question):
        assert monotonic() < end, f"never true: {question}"
        sleep(0.05)
