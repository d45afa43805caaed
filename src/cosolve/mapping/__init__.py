"""Field mapping between non-matching meshes: one method per file, each gives one linear operator (`FieldMapping`)."""

from cosolve.stubs import names_in_stub

__getattr__, __dir__, __all__ = names_in_stub(__name__, __file__)
