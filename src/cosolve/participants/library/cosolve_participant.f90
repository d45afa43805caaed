! A solver that owns its time loop, coupled by a cosolve hub: the client for Fortran 2003, over the functions of C.
!
!     type(participant) :: solver
!     call solver%open("Fluid")                          ! the hub that started this process
!     call solver%set_points("Fluid-Mesh", points)       ! points(dimensions, n)
!     call solver%start()
!     do while (solver%ongoing())
!       if (solver%must_save()) call save_state()
!       dt = min(my_step, solver%step_limit())
!       call solver%read("Fluid-Mesh", "Displacement", dt, values)
!       ...
!       call solver%write("Fluid-Mesh", "Force", values)
!       call solver%advance(dt)
!       if (solver%must_restore()) call restore_state()
!     end do
!     call solver%close()
!
! Whatever goes wrong ends the program with a sentence, unless `failed` is given: then it is 0 where all went well, and
! last_error() has the sentence otherwise.
module cosolve_participant
  use, intrinsic :: iso_c_binding
  implicit none
  private
  public :: participant, last_error

  type :: participant
    type(c_ptr), private :: handle = c_null_ptr
  contains
    procedure :: open => open_participant
    procedure :: close => close_participant
    procedure :: dimensions
    procedure :: components
    procedure :: set_points
    procedure :: set_triangles
    procedure :: set_lines
    procedure :: needs_cells
    procedure :: needs_initial_data
    procedure :: start
    procedure :: point_count
    procedure :: write => write_values
    procedure :: read => read_values
    procedure :: advance
    procedure :: time
    procedure :: step_limit
    procedure :: ongoing
    procedure :: window_complete
    procedure :: must_save
    procedure :: must_restore
  end type participant

  interface
    function c_open(name, address, patience, rank, size) result(made) bind(c, name="cosolve_open_rank")
      import :: c_ptr, c_char, c_double, c_int
      character(kind=c_char), intent(in) :: name(*), address(*)
      real(c_double), value :: patience
      integer(c_int), value :: rank, size
      type(c_ptr) :: made
    end function
    subroutine c_close(handle) bind(c, name="cosolve_close")
      import :: c_ptr
      type(c_ptr), value :: handle
    end subroutine
    function c_error() result(text) bind(c, name="cosolve_error")
      import :: c_ptr
      type(c_ptr) :: text
    end function
    function c_length(text) result(n) bind(c, name="strlen")
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
      integer(c_size_t) :: n
    end function
    function c_dimensions(handle, mesh) result(n) bind(c, name="cosolve_dimensions")
      import :: c_ptr, c_char, c_int
      type(c_ptr), value :: handle
      character(kind=c_char), intent(in) :: mesh(*)
      integer(c_int) :: n
    end function
    function c_components(handle, mesh, data) result(n) bind(c, name="cosolve_components")
      import :: c_ptr, c_char, c_int
      type(c_ptr), value :: handle
      character(kind=c_char), intent(in) :: mesh(*), data(*)
      integer(c_int) :: n
    end function
    function c_set_points(handle, mesh, count, points) result(first) bind(c, name="cosolve_set_points")
      import :: c_ptr, c_char, c_int, c_double
      type(c_ptr), value :: handle
      character(kind=c_char), intent(in) :: mesh(*)
      integer(c_int), value :: count
      real(c_double), intent(in) :: points(*)
      integer(c_int) :: first
    end function
    function c_set_cells(handle, mesh, kind, count, corners) result(status) bind(c, name="cosolve_set_cells")
      import :: c_ptr, c_char, c_int
      type(c_ptr), value :: handle
      character(kind=c_char), intent(in) :: mesh(*)
      integer(c_int), value :: kind, count
      integer(c_int), intent(in) :: corners(*)
      integer(c_int) :: status
    end function
    function c_needs_cells(handle, mesh) result(yes) bind(c, name="cosolve_needs_cells")
      import :: c_ptr, c_char, c_int
      type(c_ptr), value :: handle
      character(kind=c_char), intent(in) :: mesh(*)
      integer(c_int) :: yes
    end function
    function c_needs_initial_data(handle) result(yes) bind(c, name="cosolve_needs_initial_data")
      import :: c_ptr, c_int
      type(c_ptr), value :: handle
      integer(c_int) :: yes
    end function
    function c_start(handle) result(status) bind(c, name="cosolve_start")
      import :: c_ptr, c_int
      type(c_ptr), value :: handle
      integer(c_int) :: status
    end function
    function c_point_count(handle, mesh) result(n) bind(c, name="cosolve_point_count")
      import :: c_ptr, c_char, c_int
      type(c_ptr), value :: handle
      character(kind=c_char), intent(in) :: mesh(*)
      integer(c_int) :: n
    end function
    function c_write(handle, mesh, data, count, points, values) result(status) bind(c, name="cosolve_write")
      import :: c_ptr, c_char, c_int, c_double
      type(c_ptr), value :: handle
      character(kind=c_char), intent(in) :: mesh(*), data(*)
      integer(c_int), value :: count
      type(c_ptr), value :: points
      real(c_double), intent(in) :: values(*)
      integer(c_int) :: status
    end function
    function c_read(handle, mesh, data, after, count, points, values) result(status) bind(c, name="cosolve_read")
      import :: c_ptr, c_char, c_int, c_double
      type(c_ptr), value :: handle
      character(kind=c_char), intent(in) :: mesh(*), data(*)
      real(c_double), value :: after
      integer(c_int), value :: count
      type(c_ptr), value :: points
      real(c_double), intent(out) :: values(*)
      integer(c_int) :: status
    end function
    function c_advance(handle, step) result(status) bind(c, name="cosolve_advance")
      import :: c_ptr, c_int, c_double
      type(c_ptr), value :: handle
      real(c_double), value :: step
      integer(c_int) :: status
    end function
    function c_time(handle) result(t) bind(c, name="cosolve_time")
      import :: c_ptr, c_double
      type(c_ptr), value :: handle
      real(c_double) :: t
    end function
    function c_step_limit(handle) result(step) bind(c, name="cosolve_step_limit")
      import :: c_ptr, c_double
      type(c_ptr), value :: handle
      real(c_double) :: step
    end function
    function c_ongoing(handle) result(yes) bind(c, name="cosolve_ongoing")
      import :: c_ptr, c_int
      type(c_ptr), value :: handle
      integer(c_int) :: yes
    end function
    function c_window_complete(handle) result(yes) bind(c, name="cosolve_window_complete")
      import :: c_ptr, c_int
      type(c_ptr), value :: handle
      integer(c_int) :: yes
    end function
    function c_must_save(handle) result(yes) bind(c, name="cosolve_must_save")
      import :: c_ptr, c_int
      type(c_ptr), value :: handle
      integer(c_int) :: yes
    end function
    function c_must_restore(handle) result(yes) bind(c, name="cosolve_must_restore")
      import :: c_ptr, c_int
      type(c_ptr), value :: handle
      integer(c_int) :: yes
    end function
  end interface

contains

  function last_error() result(text)
    character(len=:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    type(c_ptr) :: at
    integer :: k, n
    at = c_error()
    n = int(c_length(at))
    call c_f_pointer(at, letters, [n])
    allocate (character(len=n) :: text)
    do k = 1, n
      text(k:k) = letters(k)
    end do
  end function

  function c_text(text) result(letters)
    character(len=*), intent(in) :: text
    character(kind=c_char, len=:), allocatable :: letters
    letters = trim(text)//c_null_char
  end function

  subroutine judge(status, failed)
    integer(c_int), intent(in) :: status
    integer, intent(out), optional :: failed
    if (present(failed)) then
      failed = merge(1, 0, status < 0)
    else if (status < 0) then
      write (0, '(a)') last_error()
      stop 1
    end if
  end subroutine

  ! For what cannot tell that it failed.
  subroutine refuse_unopened(self)
    class(participant), intent(in) :: self
    if (.not. c_associated(self%handle)) then
      write (0, '(a)') "no participant: open it first"
      stop 1
    end if
  end subroutine

  ! A solver of several processes gives the rank of each (from 0) and how many there are.
  subroutine open_participant(self, name, address, patience, rank, ranks, failed)
    class(participant), intent(inout) :: self
    character(len=*), intent(in) :: name
    character(len=*), intent(in), optional :: address
    real(c_double), intent(in), optional :: patience
    integer, intent(in), optional :: rank, ranks
    integer, intent(out), optional :: failed
    character(len=:), allocatable :: place
    real(c_double) :: seconds
    integer(c_int) :: own, all
    place = ""
    if (present(address)) place = address
    seconds = 60.0_c_double
    if (present(patience)) seconds = patience
    own = 0
    all = 1
    if (present(rank)) own = int(rank, c_int)
    if (present(ranks)) all = int(ranks, c_int)
    self%handle = c_open(c_text(name), c_text(place), seconds, own, all)
    call judge(merge(0_c_int, -1_c_int, c_associated(self%handle)), failed)
  end subroutine

  subroutine close_participant(self)
    class(participant), intent(inout) :: self
    if (c_associated(self%handle)) call c_close(self%handle)
    self%handle = c_null_ptr
  end subroutine

  integer function dimensions(self, mesh, failed)
    class(participant), intent(in) :: self
    character(len=*), intent(in) :: mesh
    integer, intent(out), optional :: failed
    dimensions = c_dimensions(self%handle, c_text(mesh))
    call judge(int(dimensions, c_int), failed)
  end function

  integer function components(self, mesh, data, failed)
    class(participant), intent(in) :: self
    character(len=*), intent(in) :: mesh, data
    integer, intent(out), optional :: failed
    components = c_components(self%handle, c_text(mesh), c_text(data))
    call judge(int(components, c_int), failed)
  end function

  subroutine set_points(self, mesh, points, failed)
    class(participant), intent(in) :: self
    character(len=*), intent(in) :: mesh
    real(c_double), intent(in) :: points(:, :)
    integer, intent(out), optional :: failed
    if (size(points, 1) /= self%dimensions(mesh)) then
      write (0, '(a)') "points are given as points(dimensions, n)"
      stop 1
    end if
    call judge(c_set_points(self%handle, c_text(mesh), size(points, 2, c_int), points), failed)
  end subroutine

  subroutine set_triangles(self, mesh, corners, failed)
    class(participant), intent(in) :: self
    character(len=*), intent(in) :: mesh
    integer(c_int), intent(in) :: corners(:, :)  ! (3, n), numbered from 0
    integer, intent(out), optional :: failed
    call judge(c_set_cells(self%handle, c_text(mesh), 1_c_int, size(corners, 2, c_int), corners), failed)
  end subroutine

  subroutine set_lines(self, mesh, corners, failed)
    class(participant), intent(in) :: self
    character(len=*), intent(in) :: mesh
    integer(c_int), intent(in) :: corners(:, :)  ! (2, n), numbered from 0
    integer, intent(out), optional :: failed
    call judge(c_set_cells(self%handle, c_text(mesh), 0_c_int, size(corners, 2, c_int), corners), failed)
  end subroutine

  logical function needs_cells(self, mesh)
    class(participant), intent(in) :: self
    character(len=*), intent(in) :: mesh
    needs_cells = c_needs_cells(self%handle, c_text(mesh)) == 1
  end function

  logical function needs_initial_data(self)
    class(participant), intent(in) :: self
    needs_initial_data = c_needs_initial_data(self%handle) == 1
  end function

  subroutine start(self, failed)
    class(participant), intent(in) :: self
    integer, intent(out), optional :: failed
    call judge(c_start(self%handle), failed)
  end subroutine

  integer function point_count(self, mesh, failed)
    class(participant), intent(in) :: self
    character(len=*), intent(in) :: mesh
    integer, intent(out), optional :: failed
    point_count = c_point_count(self%handle, c_text(mesh))
    call judge(int(point_count, c_int), failed)
  end function

  subroutine write_values(self, mesh, data, values, failed)
    class(participant), intent(in) :: self
    character(len=*), intent(in) :: mesh, data
    real(c_double), intent(in) :: values(:)  ! all points, component by component
    integer, intent(out), optional :: failed
    call judge(c_write(self%handle, c_text(mesh), c_text(data), counted(self, mesh, data, size(values)), &
                       c_null_ptr, values), failed)
  end subroutine

  subroutine read_values(self, mesh, data, after, values, failed)
    class(participant), intent(in) :: self
    character(len=*), intent(in) :: mesh, data
    real(c_double), intent(in) :: after
    real(c_double), intent(out) :: values(:)
    integer, intent(out), optional :: failed
    call judge(c_read(self%handle, c_text(mesh), c_text(data), after, counted(self, mesh, data, size(values)), &
                      c_null_ptr, values), failed)
  end subroutine

  integer(c_int) function counted(self, mesh, data, length)
    class(participant), intent(in) :: self
    character(len=*), intent(in) :: mesh, data
    integer, intent(in) :: length
    counted = int(length/self%components(mesh, data), c_int)
  end function

  subroutine advance(self, step, failed)
    class(participant), intent(in) :: self
    real(c_double), intent(in) :: step
    integer, intent(out), optional :: failed
    call judge(c_advance(self%handle, step), failed)
  end subroutine

  real(c_double) function time(self)
    class(participant), intent(in) :: self
    call refuse_unopened(self)
    time = c_time(self%handle)
  end function

  real(c_double) function step_limit(self)
    class(participant), intent(in) :: self
    call refuse_unopened(self)
    step_limit = c_step_limit(self%handle)
  end function

  logical function ongoing(self)
    class(participant), intent(in) :: self
    call refuse_unopened(self)
    ongoing = c_ongoing(self%handle) == 1
  end function

  logical function window_complete(self)
    class(participant), intent(in) :: self
    call refuse_unopened(self)
    window_complete = c_window_complete(self%handle) == 1
  end function

  logical function must_save(self)
    class(participant), intent(in) :: self
    call refuse_unopened(self)
    must_save = c_must_save(self%handle) == 1
  end function

  logical function must_restore(self)
    class(participant), intent(in) :: self
    call refuse_unopened(self)
    must_restore = c_must_restore(self%handle) == 1
  end function

end module cosolve_participant
