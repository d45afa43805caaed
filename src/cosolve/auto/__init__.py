"""Method and step from a tolerance: what pilot runs tell, which method is cheapest, when an answer is in doubt.

Nothing is run here; `run/pilots.py` does that, and `cs.choose` and `cs.simulate(rtol=...)` put both together. Theory:
docs/theory.md, "Method and step from a tolerance".
"""

from cosolve.auto.choice import Choice, Search
from cosolve.auto.trial import Trial

__all__ = ["Choice", "Search", "Trial"]
