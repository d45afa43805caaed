/* One side of the linear pair, in C, over cosolve's own interface, with substeps: own A|B; prints its last values. */
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
  const int b = argv[1][0] == 'B', steps = argc > 2 ? atoi(argv[2]) : 1;
  const char *mesh = b ? "MB" : "MA", *reads = b ? "Y" : "X", *writes = b ? "X" : "Y";
  double points[8] = {0, 0, 1, 0, 2, 0, 3, 0}, in[4], out[4], t = 0, saved = 0;
  int i, j, k;
  cosolve_participant *solver = cosolve_open(argv[1], NULL, 20.0);
  if (!solver) {
    fprintf(stderr, "%s\n", cosolve_error());
    return 1;
  }
  if (cosolve_dimensions(solver, "nowhere") != -1) return 2;
  MUST(cosolve_set_points(solver, mesh, 4, points));
  for (i = 0; i < 4; ++i) out[i] = b ? 0.2 * (i + 1) : 1 + 0.1 * i;
  if (cosolve_needs_initial_data(solver)) MUST(cosolve_write(solver, mesh, writes, 4, NULL, out));
  MUST(cosolve_start(solver));
  while (cosolve_ongoing(solver)) {
    const double room = cosolve_step_limit(solver);
    if (cosolve_must_save(solver)) saved = t;
    for (k = 0; k < steps; ++k) {
      const double dt = k < steps - 1 ? room / steps : cosolve_step_limit(solver);
      t += dt;
      MUST(cosolve_read(solver, mesh, reads, dt, 4, NULL, in));
      for (i = 0; i < 4; ++i) {
        out[i] = b ? 0.2 * (i + 1) * cos(2 * t) : 1 + 0.1 * i + 0.5 * sin(3 * t);
        for (j = 0; j < 4; ++j) out[i] += (b ? 0.9 * pow(0.5, abs(i - j)) : -0.6 / (1 + abs(i - j))) * in[j];
      }
      MUST(cosolve_write(solver, mesh, writes, 4, NULL, out));
      MUST(cosolve_advance(solver, dt));
    }
    if (cosolve_must_restore(solver)) t = saved;
  }
  cosolve_close(solver);
  for (i = 0; i < 4; ++i) printf("%.17g ", out[i]);
  return 0;
}
