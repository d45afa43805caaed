"""For solvers adapted to preCICE 3: their interface as a skin of cosolve's participants, and their configuration files.

`Participant` is what such a solver calls. `config.py` reads the files, `coupling.py` carries them out as they say;
the folder `opt_in` holds a module called `precice` for solvers that are not to be changed (`cosolve precice path`).
"""

from cosolve.precice.config import Configuration, read_configuration
from cosolve.precice.opt_in.precice import Participant, get_version_information
