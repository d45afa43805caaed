"""Time integrators inside a subsystem: Runge-Kutta, Rosenbrock and BDF here, SciPy and SUNDIALS behind adapters.

An integrator advances over a macro step with polynomial inputs. Co-simulation restarts it at every macro point, so the
native ones for ODEs are one-step methods whose only memory is the last step size: multistep methods pay 8 to 11 times
as much for a restart, and with accuracy too (benchmarks/RESULTS.md).
"""
