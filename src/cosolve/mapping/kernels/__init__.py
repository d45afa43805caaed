"""The loops of the mappings that numba compiles; imported only when a mapping that needs them is built."""
