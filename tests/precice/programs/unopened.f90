! Asks before it has opened its participant.
program unopened
  use cosolve_participant
  implicit none
  type(participant) :: solver
  do while (solver%ongoing())
    call solver%advance(solver%step_limit())
  end do
  print *, "goes on"
end program
