/* The participant of ranked.py in C, over cosolve's own interface: ranked NAME RANK SIZE; prints its last values. */
#include <cosolve_participant.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MUST(call)                                                                                                     \
  if ((call) < 0) {                                                                                                    \
    fprintf(stderr, "%s\n", cosolve_error());                                                                          \
    return 1;                                                                                                          \
  }

int main(int argc, char **argv) {
  const int b = argv[1][0] == 'B', rank = atoi(argv[2]), size = atoi(argv[3]);
  const char *mesh = b ? "MB" : "MA", *reads = b ? "Y" : "X", *writes = b ? "X" : "Y";
  const int first = 9 * rank / size, n = 9 * (rank + 1) / size - first;
  double points[18], in[9], out[9], t = 0, saved = 0;
  int i;
  cosolve_participant *solver = cosolve_open_rank(argv[1], NULL, 20.0, rank, size);
  (void)argc;
  if (!solver) {
    fprintf(stderr, "%s\n", cosolve_error());
    return 1;
  }
  for (i = 0; i < n; ++i) {
    points[2 * i] = first + i + (b ? 0.3 : 0.0);
    points[2 * i + 1] = 0;
    out[i] = b ? 0.2 * (first + i + 1) : 1 + 0.1 * (first + i);
  }
  MUST(cosolve_set_points(solver, mesh, n, points));
  if (cosolve_needs_initial_data(solver)) MUST(cosolve_write(solver, mesh, writes, n, NULL, out));
  MUST(cosolve_start(solver));
  while (cosolve_ongoing(solver)) {
    const double dt = cosolve_step_limit(solver);
    if (cosolve_must_save(solver)) saved = t;
    t += dt;
    MUST(cosolve_read(solver, mesh, reads, dt, n, NULL, in));
    for (i = 0; i < n; ++i)
      out[i] = b ? 0.9 * in[i] + 0.2 * (first + i + 1) * cos(2 * t)
                 : -0.6 * in[i] + 1 + 0.1 * (first + i) + 0.5 * sin(3 * t);
    MUST(cosolve_write(solver, mesh, writes, n, NULL, out));
    MUST(cosolve_advance(solver, dt));
    if (cosolve_must_restore(solver)) t = saved;
  }
  cosolve_close(solver);
  for (i = 0; i < n; ++i) printf("%.17g ", out[i]);
  return 0;
}
