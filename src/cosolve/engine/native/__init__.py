"""The macro-step loop compiled, for systems whose subsystems and laws can all be called from compiled code."""

from cosolve.engine.native.chunks import Chunk, Chunks, why_not_compiled

__all__ = ["Chunk", "Chunks", "why_not_compiled"]
