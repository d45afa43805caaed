"""The compiled equations of motion: kinematics, forces, constraints, and the time loops over them."""
