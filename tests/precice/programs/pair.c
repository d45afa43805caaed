/* One side of the linear pair, in C, against precice/preciceC.h: pair A|B, config; prints its last values. */
#include <math.h>
#include <precice/preciceC.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double entry(int side, int i, int j) {
  const int d = abs(i - j);
  return side == 0 ? -0.6 / (1 + d) : 0.9 * pow(0.5, d);
}
static double alone(int side, int i, double t) {
  return side == 0 ? 1 + 0.1 * i + 0.5 * sin(3 * t) : 0.2 * (i + 1) * cos(2 * t);
}

int main(int argc, char **argv) {
  const char *name = argv[1], *config = argv[argc - 1];
  const int side = name[0] - 'A';
  const char *mesh = side ? "MB" : "MA", *reads = side ? "Y" : "X", *writes = side ? "X" : "Y";
  double points[8] = {0, 0, 1, 0, 2, 0, 3, 0}, in[4], out[4], t = 0, saved = 0;
  int ids[4], k, j;
  precicec_createParticipant(name, config, 0, 1);
  if (precicec_getMeshDimensions(mesh) != 2 || precicec_getDataDimensions(mesh, reads) != 1) return 2;
  if (strncmp(precicec_getVersionInformation(), "3.", 2)) return 3;
  precicec_setMeshVertices(mesh, 4, points, ids);
  if (precicec_requiresInitialData()) {
    for (k = 0; k < 4; ++k) out[k] = alone(side, k, 0);
    precicec_writeData(mesh, writes, 4, ids, out);
  }
  precicec_initialize();
  while (precicec_isCouplingOngoing()) {
    if (precicec_requiresWritingCheckpoint()) saved = t;
    const double dt = precicec_getMaxTimeStepSize();
    t += dt;
    precicec_readData(mesh, reads, 4, ids, dt, in);
    for (k = 0; k < 4; ++k) {
      out[k] = alone(side, k, t);
      for (j = 0; j < 4; ++j) out[k] += entry(side, k, j) * in[j];
    }
    precicec_writeData(mesh, writes, 4, ids, out);
    precicec_advance(dt);
    if (precicec_requiresReadingCheckpoint()) t = saved;
  }
  precicec_finalize();
  for (k = 0; k < 4; ++k) printf("%.17g ", out[k]);
  return 0;
}
