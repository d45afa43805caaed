"""The block engine: one method and one step size for thousands of variants of a linear system at once."""
