"""How long the next macro step is: exact clocks and error control."""

from cosolve.stepsize.clock import TickClock, UniformClock, refuse_bad_span, refuse_bad_step
from cosolve.stepsize.control import Adaptive
