// A solver that owns its time loop, coupled by a cosolve hub: the client in C++17, without any dependency.
//
//     cosolve::Participant solver("Fluid");                     // the hub that started this process
//     solver.set_points("Fluid-Mesh", n, points);
//     solver.start();
//     while (solver.ongoing()) {
//       if (solver.must_save()) save();
//       double dt = std::min(my_step, solver.step_limit());
//       solver.read("Fluid-Mesh", "Displacement", dt, n, nullptr, displacement);
//       compute(dt);
//       solver.write("Fluid-Mesh", "Force", n, nullptr, force);
//       solver.advance(dt);
//       if (solver.must_restore()) restore();
//     }
//
// Points are numbered from 0 in the order in which they were set; `points == nullptr` means all of them. Whatever is not
// allowed, and a hub or another participant that is gone, is a `ParticipantError` with a sentence.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

namespace cosolve {

class ParticipantError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Cell { line, triangle, quadrilateral, tetrahedron };

class Participant {
public:
  // `address` is "unix:PATH TOKEN" or "tcp:HOST:PORT TOKEN"; by default that of the hub that started this process
  // (environment variable COSOLVE_HUB). `patience` is how many seconds to wait for it. A solver of several processes
  // makes one in each, with its `rank` of `size`: points and values are those of the rank, and start and advance wait
  // for all ranks.
  explicit Participant(const std::string &name, const std::string &address = "", double patience = 60.0, int rank = 0,
                       int size = 1);
  ~Participant();
  Participant(Participant &&) noexcept;
  Participant &operator=(Participant &&) noexcept;

  // -- before the start
  int dimensions(const std::string &mesh) const;
  int components(const std::string &mesh, const std::string &data) const;
  int set_points(const std::string &mesh, std::size_t count, const double *points);  // the number of the first
  bool needs_cells(const std::string &mesh) const;
  void set_cells(const std::string &mesh, Cell kind, std::size_t count, const int *corners);
  void set_region(const std::string &mesh, const double *box);  // [xmin, xmax, ymin, ymax, ...]
  bool needs_initial_data() const;
  bool needs_gradient(const std::string &mesh, const std::string &data) const;
  void start();

  // -- running
  std::size_t point_count(const std::string &mesh) const;
  const double *points(const std::string &mesh) const;
  void write(const std::string &mesh, const std::string &data, std::size_t count, const int *points,
             const double *values);
  void write_gradient(const std::string &mesh, const std::string &data, std::size_t count, const int *points,
                      const double *gradients);
  void read(const std::string &mesh, const std::string &data, double after, std::size_t count, const int *points,
            double *values) const;
  void read_at(const std::string &mesh, const std::string &data, double after, std::size_t count,
               const double *coordinates, double *values) const;
  void write_at(const std::string &mesh, const std::string &data, std::size_t count, const double *coordinates,
                const double *values);
  void advance(double step);
  double time() const;
  double step_limit() const;
  bool in_touch() const;  // false once the hub is gone, or has said that something went wrong
  bool ongoing() const;
  bool window_complete() const;
  bool must_save();     // must be asked when it is true
  bool must_restore();  // likewise
  void finish();        // done by the destructor too

private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace cosolve
