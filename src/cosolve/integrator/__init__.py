"""Time integrators inside a subsystem: fixed-step and adaptive Runge-Kutta here, SciPy and SUNDIALS behind adapters.

An integrator crosses a macro step with polynomial inputs. Co-simulation restarts it at every macro point, so the
native ones are one-step methods whose only memory is the last step size (performance.md, section 2).
"""
