"""The public names and the modules they live in; type checkers read this file, and so does `__init__.py`."""

from .coupling import Joint as Joint, assemble as assemble, constraint_residuals as constraint_residuals
from .exudyn_model import ExudynModel as ExudynModel
from .model.model import MultibodyModel as MultibodyModel
from .subsystem import MultibodySubsystem as MultibodySubsystem
