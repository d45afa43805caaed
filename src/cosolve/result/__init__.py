"""What comes out of a run, in memory and on disk."""

from cosolve.result.error_bar import ErrorBar
from cosolve.result.notes import Note
from cosolve.result.recorder import Layout, Memory, Recorder, Row
from cosolve.result.result import Channel, Result, Stats, find_channel, load_result
