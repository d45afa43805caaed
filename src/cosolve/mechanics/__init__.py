"""Rigid bodies, joints, constrained equations of motion and drift remedies; used by `subsystem/multibody`.

Description: `model` (what users write), `parts`, `joints`, `checks`. Arrays and start values: `build`, `arrays`,
`consistency`. Compiled equations: `kinematics`, `forces`, `constraints`, `dynamics`; compiled time loops: `stepping`
(explicit), `radau`, `sensitivity`. Python functions of users: `outside`. Results: `observe`, `entries`. `constrained`
integrates any small constrained system given by functions. For users: docs/multibody.md.
"""
