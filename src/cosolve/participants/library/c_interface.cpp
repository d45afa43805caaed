// The C functions of cosolve_participant.h: nothing is thrown through them, the last sentence is kept.
#include "cosolve_participant.h"
#include "cosolve_participant.hpp"

#include <algorithm>
#include <limits>

struct cosolve_participant {
  cosolve::Participant solver;
};

namespace {

thread_local std::string last;

template <class Do> int guarded(Do what) {
  try {
    return what();
  } catch (const std::exception &error) {
    last = error.what();
  } catch (...) {
    last = "something unknown went wrong";
  }
  return -1;
}

template <class Do> int done(Do what) {
  return guarded([&] {
    what();
    return 0;
  });
}

std::string text(const char *given) { return given ? given : ""; }

cosolve::Participant &of(cosolve_participant *p) {
  if (!p) throw cosolve::ParticipantError("no participant: cosolve_open it first, and look whether that gave one");
  return p->solver;
}

template <class Do> double number(Do what) {
  double found = std::numeric_limits<double>::quiet_NaN();
  done([&] { found = what(); });
  return found;
}

std::size_t size(int count) {
  if (count < 0) throw cosolve::ParticipantError("a number of points is negative");
  return std::size_t(count);
}

}  // namespace

extern "C" {

cosolve_participant *cosolve_open(const char *name, const char *address, double patience) {
  return cosolve_open_rank(name, address, patience, 0, 1);
}
cosolve_participant *cosolve_open_rank(const char *name, const char *address, double patience, int rank, int size) {
  cosolve_participant *made = nullptr;
  done([&] { made = new cosolve_participant{cosolve::Participant(text(name), text(address), patience, rank, size)}; });
  return made;
}
void cosolve_close(cosolve_participant *p) { delete p; }
const char *cosolve_error() { return last.c_str(); }

int cosolve_dimensions(cosolve_participant *p, const char *mesh) {
  return guarded([&] { return of(p).dimensions(text(mesh)); });
}
int cosolve_components(cosolve_participant *p, const char *mesh, const char *data) {
  return guarded([&] { return of(p).components(text(mesh), text(data)); });
}
int cosolve_set_points(cosolve_participant *p, const char *mesh, int count, const double *points) {
  return guarded([&] { return of(p).set_points(text(mesh), size(count), points); });
}
int cosolve_needs_cells(cosolve_participant *p, const char *mesh) {
  return guarded([&] { return int(of(p).needs_cells(text(mesh))); });
}
int cosolve_set_cells(cosolve_participant *p, const char *mesh, int kind, int count, const int *corners) {
  return done([&] {
    if (kind < COSOLVE_LINE || kind > COSOLVE_TETRAHEDRON) throw cosolve::ParticipantError("there is no such cell");
    of(p).set_cells(text(mesh), cosolve::Cell(kind), size(count), corners);
  });
}
int cosolve_set_region(cosolve_participant *p, const char *mesh, const double *box) {
  return done([&] { of(p).set_region(text(mesh), box); });
}
int cosolve_needs_initial_data(cosolve_participant *p) {
  return guarded([&] { return int(of(p).needs_initial_data()); });
}
int cosolve_needs_gradient(cosolve_participant *p, const char *mesh, const char *data) {
  return guarded([&] { return int(of(p).needs_gradient(text(mesh), text(data))); });
}
int cosolve_start(cosolve_participant *p) {
  return done([&] { of(p).start(); });
}
int cosolve_point_count(cosolve_participant *p, const char *mesh) {
  return guarded([&] { return int(of(p).point_count(text(mesh))); });
}
int cosolve_get_points(cosolve_participant *p, const char *mesh, double *points) {
  return done([&] {
    const std::size_t all = of(p).point_count(text(mesh)) * std::size_t(of(p).dimensions(text(mesh)));
    std::copy_n(of(p).points(text(mesh)), all, points);
  });
}
int cosolve_write(cosolve_participant *p, const char *mesh, const char *data, int count, const int *points,
                  const double *values) {
  return done([&] { of(p).write(text(mesh), text(data), size(count), points, values); });
}
int cosolve_write_gradient(cosolve_participant *p, const char *mesh, const char *data, int count, const int *points,
                           const double *gradients) {
  return done([&] { of(p).write_gradient(text(mesh), text(data), size(count), points, gradients); });
}
int cosolve_read(cosolve_participant *p, const char *mesh, const char *data, double after, int count,
                 const int *points, double *values) {
  return done([&] { of(p).read(text(mesh), text(data), after, size(count), points, values); });
}
int cosolve_read_at(cosolve_participant *p, const char *mesh, const char *data, double after, int count,
                    const double *coordinates, double *values) {
  return done([&] { of(p).read_at(text(mesh), text(data), after, size(count), coordinates, values); });
}
int cosolve_write_at(cosolve_participant *p, const char *mesh, const char *data, int count, const double *coordinates,
                     const double *values) {
  return done([&] { of(p).write_at(text(mesh), text(data), size(count), coordinates, values); });
}
int cosolve_advance(cosolve_participant *p, double step) {
  return done([&] { of(p).advance(step); });
}
double cosolve_time(cosolve_participant *p) {
  return number([&] { return of(p).time(); });
}
double cosolve_step_limit(cosolve_participant *p) {
  return number([&] { return of(p).step_limit(); });
}
int cosolve_ongoing(cosolve_participant *p) {  // never -1, which would be a yes in most loops
  return guarded([&] { return int(of(p).in_touch() && of(p).ongoing()); }) == 1;
}
int cosolve_window_complete(cosolve_participant *p) {
  return guarded([&] { return int(of(p).window_complete()); });
}
int cosolve_must_save(cosolve_participant *p) {
  return guarded([&] { return int(of(p).must_save()); });
}
int cosolve_must_restore(cosolve_participant *p) {
  return guarded([&] { return int(of(p).must_restore()); });
}

}  // extern "C"
