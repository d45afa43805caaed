// One side of the linear pair, in C++, against precice/precice.hpp: pair A|B, config; prints its last values.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <precice/precice.hpp>
#include <string>
#include <vector>

int main(int, char **argv) {
  const std::string name = argv[1];
  const bool b = name == "B";
  const std::string mesh = b ? "MB" : "MA", reads = b ? "Y" : "X", writes = b ? "X" : "Y";
  const auto entry = [&](int i, int j) {
    const int d = std::abs(i - j);
    return b ? 0.9 * std::pow(0.5, d) : -0.6 / (1 + d);
  };
  const auto alone = [&](int i, double t) {
    return b ? 0.2 * (i + 1) * std::cos(2 * t) : 1 + 0.1 * i + 0.5 * std::sin(3 * t);
  };
  try {
    precice::Participant solver(name, argv[2], 0, 1);
    std::vector<double> points{0, 0, 1, 0, 2, 0, 3, 0}, in(4), out(4);
    std::vector<int> ids(4);
    solver.setMeshVertices(mesh, points, ids);
    if (solver.requiresInitialData()) {
      for (int k = 0; k < 4; ++k) out[k] = alone(k, 0);
      solver.writeData(mesh, writes, ids, out);
    }
    solver.initialize();
    double t = 0, saved = 0;
    while (solver.isCouplingOngoing()) {
      if (solver.requiresWritingCheckpoint()) saved = t;
      const double dt = solver.getMaxTimeStepSize();
      t += dt;
      solver.readData(mesh, reads, ids, dt, in);
      for (int k = 0; k < 4; ++k) {
        out[k] = alone(k, t);
        for (int j = 0; j < 4; ++j) out[k] += entry(k, j) * in[j];
      }
      if (std::getenv("SPOILT")) out[2] = NAN;
      solver.writeData(mesh, writes, ids, out);
      solver.advance(dt);
      if (solver.requiresReadingCheckpoint()) t = saved;
    }
    for (double value : out) std::printf("%.17g ", value);
  } catch (const precice::Error &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
