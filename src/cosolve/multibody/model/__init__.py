"""A multibody system as it is described: bodies, markers, joints, force elements; checked, and turned into arrays."""
