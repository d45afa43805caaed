"""Method and step from a tolerance: what pilot runs tell, which method is cheapest, when an answer is in doubt.

`pilots.py` runs, `choose.py` and `automatic.py` put it together for `cs.choose` and `cs.simulate(rtol=...)`; the other
modules run nothing. Theory: docs/theory.md, "Method and step from a tolerance".
"""

from cosolve.accuracy.auto.choice import Choice, Search
from cosolve.accuracy.auto.trial import Trial

__all__ = ["Choice", "Search", "Trial"]
