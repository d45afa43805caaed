/* Side A of the linear pair, in C, doing what it should not: each wrong call says -1 and why, and nothing ends by it.
   Then it goes away in the middle of the run, silently (misused leaves), or looks at nothing but whether the
   coupling goes on (misused ignores). misused quits is side B, which leaves after its start. */
#include <cosolve_participant.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WRONG(call)                                                                                                    \
  {                                                                                                                    \
    const int answer = (int)(call);                                                                                    \
    printf("%s: %d: %s\n", #call, answer, cosolve_error());                                                            \
  }

int main(int argc, char **argv) {
  double points[8] = {0, 0, 1, 0, 2, 0, 3, 0}, in[4] = {0}, out[4] = {0}, bad[4] = {0, 1, NAN, 3};
  int far[4] = {0, 1, 2, 4};
  cosolve_participant *none = NULL, *solver;
  if (argc < 2) return 3;
  if (!strcmp(argv[1], "quits")) {
    solver = cosolve_open("B", NULL, 20.0);
    if (!solver || cosolve_set_points(solver, "MB", 4, points) || cosolve_start(solver)) return 3;
    _Exit(0);
  }
  WRONG(cosolve_dimensions(none, "MA"));
  WRONG(cosolve_advance(none, 0.1));
  WRONG(cosolve_must_save(none));
  printf("%d %d\n", cosolve_ongoing(none), isnan(cosolve_step_limit(none)) && isnan(cosolve_time(none)));
  solver = cosolve_open("A", NULL, 20.0);
  if (!solver) return 3;
  WRONG(cosolve_open("A", NULL, 20.0) ? 0 : -1);
  WRONG(cosolve_open("Absent", NULL, 20.0) ? 0 : -1);
  WRONG(cosolve_set_points(solver, "MC", 4, points));
  WRONG(cosolve_set_points(solver, "MB", 4, points));
  WRONG(cosolve_set_points(solver, "MA", -4, points));
  WRONG(cosolve_set_points(solver, "MA", 4, points) + 1 ? -2 : 0);
  WRONG(cosolve_advance(solver, 0.1));
  WRONG(cosolve_read(solver, "MA", "X", 0.0, 4, NULL, in));
  WRONG(cosolve_write(solver, "MA", "Z", 4, NULL, out));
  WRONG(cosolve_write(solver, "MA", "X", 4, NULL, out));
  WRONG(cosolve_write(solver, "MA", "Y", 4, NULL, bad));
  WRONG(cosolve_write(solver, "MA", "Y", 3, NULL, out));
  WRONG(cosolve_write(solver, "MA", "Y", 4, far, out));
  fflush(stdout);
  if (cosolve_start(solver)) return 4;
  WRONG(cosolve_start(solver));
  WRONG(cosolve_set_points(solver, "MA", 4, points));
  WRONG(cosolve_advance(solver, 0.1)); /* it was not asked whether the state must be saved */
  cosolve_must_save(solver);
  WRONG(cosolve_advance(solver, 0.2));
  WRONG(cosolve_advance(solver, NAN));
  WRONG(cosolve_advance(solver, 0.0));
  WRONG(cosolve_read(solver, "MA", "X", 0.2, 4, NULL, in));
  fflush(stdout);
  if (!strcmp(argv[1], "leaves")) _Exit(0);
  while (cosolve_ongoing(solver)) { /* the other leaves after its start */
    cosolve_must_save(solver);
    cosolve_must_restore(solver);
    cosolve_advance(solver, cosolve_step_limit(solver));
  }
  printf("came out: %s\n", cosolve_error());
  cosolve_close(solver);
  return 0;
}
