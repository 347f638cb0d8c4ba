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
  implicit none
  integer, intent(in) :: n
  double precision, intent(out) :: total
  integer :: i
  total = 1
  do i = 1, n
    total = total * 0.999d0 + mod(i, 5)
  end do
end subroutine f_spin
