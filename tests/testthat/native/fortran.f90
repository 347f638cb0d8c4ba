! Fortran: called through .Fortran(), by a name with an underscore behind.

subroutine f_inner(n, total)
  implicit none
  integer, intent(in) :: n
  double precision, intent(out) :: total
  double precision :: part
  call f_spin(n, part)
  total = part + 1
end subroutine f_inner

subroutine f_spin(n, total)
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    subroutine c_tick() bind(c)
    end subroutine c_tick
    function c_steps() bind(c) result(steps)
      import
      integer(c_int) :: steps
    end function c_steps
  end interface
  integer, intent(in) :: n
  double precision, intent(out) :: total
  integer :: i, j, steps
  total = 1
  steps = c_steps()
  do i = 1, n
    if (steps == 0) call c_tick()
    do j = 1, steps
      total = total * 0.999d0 + mod(j, 5)
    end do
  end do
end subroutine f_spin
