/* Reads inside each window at tenths of it and prints time and values: reads A|B. */
#include <cosolve_participant.h>
#include <stdio.h>

int main(int argc, char **argv) {
  const int b = argc > 1 && argv[1][0] == 'B';
  double points[8] = {0, 0, 1, 0, 2, 0, 3, 0}, in[4];
  int k;
  cosolve_participant *solver = cosolve_open(b ? "B" : "A", NULL, 20.0);
  if (!solver || cosolve_set_points(solver, b ? "MB" : "MA", 4, points) || cosolve_start(solver)) return 1;
  while (cosolve_ongoing(solver)) {
    const double room = cosolve_step_limit(solver);
    for (k = 0; k <= 10; ++k) {
      if (cosolve_read(solver, b ? "MB" : "MA", b ? "Y" : "X", room * (k / 10.0), 4, NULL, in)) return 2;
      printf("%.17g %.17g %.17g %.17g %.17g\n", cosolve_time(solver) + room * (k / 10.0), in[0], in[1], in[2], in[3]);
    }
    cosolve_must_save(solver);
    if (cosolve_advance(solver, room)) return 3;
  }
  cosolve_close(solver);
  return 0;
}
