"""The two halves of a quarter car, each a function that `cosolve export` makes an FMU of.

    cosolve export examples/quarter_car_fmus/parts.py:chassis chassis.fmu
    cosolve export examples/quarter_car_fmus/parts.py:wheel wheel.fmu

The suspension belongs to the chassis: it takes the motion of the wheel and gives back the force, so the two form a
loop. Arguments with a default become parameters of the FMUs.
"""

import cosolve as cs


def chassis(mass=250.0, stiffness=16e3, damping=1000.0):
    """The body of the car on its suspension; `force` is what the suspension does to the wheel below."""
    return cs.Linear(
        A=[[0.0, 1.0], [-stiffness / mass, -damping / mass]],
        B=[[0.0, 0.0], [stiffness / mass, damping / mass]],
        C=[[1.0, 0.0], [stiffness, damping]],
        D=[[0.0, 0.0], [-stiffness, -damping]],
        x0=[0.0, 0.0],
        inputs=[cs.Port("z_wheel", unit="m"), cs.Port("v_wheel", unit="m/s")],
        outputs=[cs.Port("z", unit="m"), cs.Port("force", unit="N")],
    )


def wheel(mass=35.0, tyre=160e3):
    """The wheel on its tyre, under a force from above."""
    return cs.Linear(
        A=[[0.0, 1.0], [-tyre / mass, 0.0]],
        B=[[0.0, 0.0], [1.0 / mass, tyre / mass]],
        C=[[1.0, 0.0], [0.0, 1.0]],
        x0=[0.0, 0.0],
        inputs=[cs.Port("force", unit="N"), cs.Port("road", unit="m")],
        outputs=[cs.Port("z", unit="m"), cs.Port("v", unit="m/s")],
    )
