! One side of the linear pair, in Fortran, over cosolve's own interface: pair A|B; prints its last values.
program pair
  use, intrinsic :: iso_c_binding, only: c_double
  use cosolve_participant
  implicit none
  type(participant) :: solver
  character(len=1) :: name
  character(len=2) :: mesh
  character(len=1) :: reads, writes
  real(c_double) :: points(2, 4), in(4), out(4), t, saved, dt
  integer :: k, j
  call get_command_argument(1, name)
  mesh = merge("MB", "MA", name == "B")
  reads = merge("Y", "X", name == "B")
  writes = merge("X", "Y", name == "B")
  points = 0
  points(1, :) = [(real(k, c_double), k=0, 3)]
  call solver%open(name)
  call solver%set_points(mesh, points)
  if (solver%needs_initial_data()) then
    out = [(alone(k, 0.0_c_double), k=0, 3)]
    call solver%write(mesh, writes, out)
  end if
  call solver%start()
  t = 0
  saved = 0
  do while (solver%ongoing())
    if (solver%must_save()) saved = t
    dt = solver%step_limit()
    t = t + dt
    call solver%read(mesh, reads, dt, in)
    do k = 0, 3
      out(k + 1) = alone(k, t)
      do j = 0, 3
        out(k + 1) = out(k + 1) + entry(k, j)*in(j + 1)
      end do
    end do
    call solver%write(mesh, writes, out)
    call solver%advance(dt)
    if (solver%must_restore()) t = saved
  end do
  call solver%close()
  write (*, '(4(es25.17, 1x))') out
contains
  real(c_double) function entry(i, j)
    integer, intent(in) :: i, j
    if (name == "A") then
      entry = -0.6_c_double/(1 + abs(i - j))
    else
      entry = 0.9_c_double*0.5_c_double**abs(i - j)
    end if
  end function
  real(c_double) function alone(i, at)
    integer, intent(in) :: i
    real(c_double), intent(in) :: at
    if (name == "A") then
      alone = 1 + 0.1_c_double*i + 0.5_c_double*sin(3*at)
    else
      alone = 0.2_c_double*(i + 1)*cos(2*at)
    end if
  end function
end program
