"""A folder for the path of solvers adapted to preCICE 3: it holds the module `precice`, and is used on request only."""
