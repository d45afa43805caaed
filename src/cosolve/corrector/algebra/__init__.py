"""Linear algebra of the correctors: least squares of past iterates, low-rank and long vectors, LU with a verdict."""
