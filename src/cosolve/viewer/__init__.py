"""Runs, results and systems in the browser and in notebooks: one page (`frontend/`), served from this computer."""

from cosolve.viewer.live import Live
from cosolve.viewer.viewing import view
from cosolve.viewer.widget import widget
