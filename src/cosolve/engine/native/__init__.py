"""The macro-step loop compiled, for systems whose subsystems and laws can all be called from compiled code."""

from cosolve.engine.native.chunks import Chunks
from cosolve.engine.native.reasons import uncompiled_note, why_not_compiled
