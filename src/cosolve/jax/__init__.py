"""Subsystems written in JAX: compiled steps, exact derivatives. Needs the extra `cosolve[jax]`."""
