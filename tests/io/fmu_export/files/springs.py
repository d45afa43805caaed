"""A neighbour that the model imports: it must travel with it."""


def spring(stiffness):
    return lambda a, b: stiffness * (b - a)
