// The interface of precice/precice.hpp and precice/preciceC.h, said in the words of cosolve::Participant.
#include <precice/precice.hpp>
#include <precice/preciceC.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "cosolve_participant.hpp"

#ifndef COSOLVE_VERSION
#define COSOLVE_VERSION "0"
#endif

namespace precice {

static_assert(sizeof(int) == 4, "vertex ids of four bytes");

namespace impl {

class ParticipantImpl {
public:
  ParticipantImpl(const std::string &name, const std::string &config, int rank, int size)
      : solver(name, hub_of(config), 60.0, rank, size) {}
  cosolve::Participant solver;
  bool initial_asked = false;

private:
  // The hub that started this process, or the one that left a note beside the configuration file, perhaps late.
  static std::string hub_of(const std::string &config) {
    if (const char *left = std::getenv("COSOLVE_HUB"))
      if (*left) return left;
    const char *given = std::getenv("COSOLVE_PATIENCE");
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(given ? std::atof(given) : 60.0);
    while (true) {
      std::ifstream note(config + ".hub");
      std::string address;
      if (note && std::getline(note, address) && !address.empty()) return address;
      if (std::chrono::steady_clock::now() > end)
        throw Error("no hub for " + config + ": start one with 'cosolve precice run " + config + "'");
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
};

}  // namespace impl

namespace {

std::string text(string_view view) {  // callers with other headers may count the zero at the end
  std::size_t n = view.size();
  while (n && view[n - 1] == '\0') --n;
  return n ? std::string(view.data(), n) : std::string();
}

void refuse_size(const char *what, std::size_t given, std::size_t wanted) {
  if (given != wanted)
    throw Error(std::string(what) + ": " + std::to_string(given) + " numbers were given where " +
                std::to_string(wanted) + " belong");
}

template <class Do> auto said(Do what) -> decltype(what()) {  // errors of the interface are its own kind
  try {
    return what();
  } catch (const cosolve::ParticipantError &error) {
    throw Error(error.what());
  }
}

void put_cells(cosolve::Participant &solver, string_view mesh, cosolve::Cell kind, std::size_t corners,
               span<const VertexID> ids) {
  if (ids.size() % corners) refuse_size("corners of cells", ids.size(), ids.size() / corners * corners);
  said([&] { solver.set_cells(text(mesh), kind, ids.size() / corners, ids.data()); });
}

}  // namespace

std::string getVersionInformation() { return PRECICE_VERSION ";cosolve " COSOLVE_VERSION ";"; }

Participant::Participant(string_view name, string_view config, int rank, int size)
    : _impl(said([&] { return new impl::ParticipantImpl(text(name), text(config), rank, size); })) {}
Participant::Participant(string_view name, string_view config, int rank, int size, void *)
    : Participant(name, config, rank, size) {}
Participant::~Participant() = default;

void Participant::initialize() {
  if (_impl->solver.needs_initial_data() && !_impl->initial_asked)
    throw Error("initial data are due; ask requiresInitialData before initialize");
  said([&] { _impl->solver.start(); });
}
void Participant::advance(double step) {
  said([&] { _impl->solver.advance(step); });
}
void Participant::finalize() {
  said([&] { _impl->solver.finish(); });
}
int Participant::getMeshDimensions(string_view mesh) const {
  return said([&] { return _impl->solver.dimensions(text(mesh)); });
}
int Participant::getDataDimensions(string_view mesh, string_view data) const {
  return said([&] { return _impl->solver.components(text(mesh), text(data)); });
}
bool Participant::isCouplingOngoing() const { return _impl->solver.ongoing(); }
bool Participant::isTimeWindowComplete() const { return _impl->solver.window_complete(); }
double Participant::getMaxTimeStepSize() const { return _impl->solver.step_limit(); }
bool Participant::requiresInitialData() {
  _impl->initial_asked = true;
  return _impl->solver.needs_initial_data();
}
bool Participant::requiresWritingCheckpoint() { return _impl->solver.must_save(); }
bool Participant::requiresReadingCheckpoint() { return _impl->solver.must_restore(); }

bool Participant::requiresMeshConnectivityFor(string_view mesh) const {
  return said([&] { return _impl->solver.needs_cells(text(mesh)); });
}
void Participant::resetMesh(string_view mesh) {
  throw Error("mesh '" + text(mesh) + "' cannot be reset: a mesh keeps its points for the whole run");
}
VertexID Participant::setMeshVertex(string_view mesh, span<const double> point) {
  refuse_size("a vertex", point.size(), std::size_t(getMeshDimensions(mesh)));
  return said([&] { return _impl->solver.set_points(text(mesh), 1, point.data()); });
}
int Participant::getMeshVertexSize(string_view mesh) const {
  return said([&] { return int(_impl->solver.point_count(text(mesh))); });
}
void Participant::setMeshVertices(string_view mesh, span<const double> points, span<VertexID> ids) {
  refuse_size("vertices", points.size(), ids.size() * std::size_t(getMeshDimensions(mesh)));
  const int first = said([&] { return _impl->solver.set_points(text(mesh), ids.size(), points.data()); });
  for (std::size_t k = 0; k < ids.size(); ++k) ids[k] = first + int(k);
}
void Participant::setMeshEdge(string_view mesh, VertexID a, VertexID b) {
  const int ids[] = {a, b};
  put_cells(_impl->solver, mesh, cosolve::Cell::line, 2, ids);
}
void Participant::setMeshEdges(string_view mesh, span<const VertexID> ids) {
  put_cells(_impl->solver, mesh, cosolve::Cell::line, 2, ids);
}
void Participant::setMeshTriangle(string_view mesh, VertexID a, VertexID b, VertexID c) {
  const int ids[] = {a, b, c};
  put_cells(_impl->solver, mesh, cosolve::Cell::triangle, 3, ids);
}
void Participant::setMeshTriangles(string_view mesh, span<const VertexID> ids) {
  put_cells(_impl->solver, mesh, cosolve::Cell::triangle, 3, ids);
}
void Participant::setMeshQuad(string_view mesh, VertexID a, VertexID b, VertexID c, VertexID d) {
  const int ids[] = {a, b, c, d};
  put_cells(_impl->solver, mesh, cosolve::Cell::quadrilateral, 4, ids);
}
void Participant::setMeshQuads(string_view mesh, span<const VertexID> ids) {
  put_cells(_impl->solver, mesh, cosolve::Cell::quadrilateral, 4, ids);
}
void Participant::setMeshTetrahedron(string_view mesh, VertexID a, VertexID b, VertexID c, VertexID d) {
  const int ids[] = {a, b, c, d};
  put_cells(_impl->solver, mesh, cosolve::Cell::tetrahedron, 4, ids);
}
void Participant::setMeshTetrahedra(string_view mesh, span<const VertexID> ids) {
  put_cells(_impl->solver, mesh, cosolve::Cell::tetrahedron, 4, ids);
}

void Participant::writeData(string_view mesh, string_view data, span<const VertexID> ids, span<const double> values) {
  refuse_size("values to write", values.size(), ids.size() * std::size_t(getDataDimensions(mesh, data)));
  if (ids.empty()) return;
  said([&] { _impl->solver.write(text(mesh), text(data), ids.size(), ids.data(), values.data()); });
}
void Participant::readData(string_view mesh, string_view data, span<const VertexID> ids, double after,
                           span<double> values) const {
  refuse_size("values to read", values.size(), ids.size() * std::size_t(getDataDimensions(mesh, data)));
  static const int none = 0;
  const int *where = ids.empty() ? &none : ids.data();
  said([&] { _impl->solver.read(text(mesh), text(data), after, ids.size(), where, values.data()); });
}
void Participant::writeAndMapData(string_view mesh, string_view data, span<const double> coordinates,
                                  span<const double> values) {
  const std::size_t count = coordinates.size() / std::size_t(getMeshDimensions(mesh));
  refuse_size("values to write", values.size(), count * std::size_t(getDataDimensions(mesh, data)));
  said([&] { _impl->solver.write_at(text(mesh), text(data), count, coordinates.data(), values.data()); });
}
void Participant::mapAndReadData(string_view mesh, string_view data, span<const double> coordinates, double after,
                                 span<double> values) const {
  const std::size_t count = coordinates.size() / std::size_t(getMeshDimensions(mesh));
  refuse_size("values to read", values.size(), count * std::size_t(getDataDimensions(mesh, data)));
  said([&] { _impl->solver.read_at(text(mesh), text(data), after, count, coordinates.data(), values.data()); });
}
void Participant::setMeshAccessRegion(string_view mesh, span<const double> box) const {
  refuse_size("a region", box.size(), 2 * std::size_t(getMeshDimensions(mesh)));
  said([&] { _impl->solver.set_region(text(mesh), box.data()); });
}
void Participant::getMeshVertexIDsAndCoordinates(string_view mesh, span<VertexID> ids, span<double> points) const {
  const auto count = std::size_t(getMeshVertexSize(mesh));
  refuse_size("vertex ids", ids.size(), count);
  refuse_size("coordinates", points.size(), count * std::size_t(getMeshDimensions(mesh)));
  const double *from = _impl->solver.points(text(mesh));
  for (std::size_t k = 0; k < count; ++k) ids[k] = int(k);
  for (std::size_t k = 0; k < points.size(); ++k) points[k] = from[k];
}
bool Participant::requiresGradientDataFor(string_view mesh, string_view data) const {
  return said([&] { return _impl->solver.needs_gradient(text(mesh), text(data)); });
}
void Participant::writeGradientData(string_view mesh, string_view data, span<const VertexID> ids,
                                    span<const double> gradients) {
  const auto width = std::size_t(getDataDimensions(mesh, data) * getMeshDimensions(mesh));
  refuse_size("gradients", gradients.size(), ids.size() * width);
  if (ids.empty()) return;
  said([&] { _impl->solver.write_gradient(text(mesh), text(data), ids.size(), ids.data(), gradients.data()); });
}
void Participant::startProfilingSection(string_view) {}
void Participant::stopLastProfilingSection() {}

}  // namespace precice

// -- C -----------------------------------------------------------------------------------------------------------

namespace {

std::unique_ptr<precice::Participant> one;

[[noreturn]] void stopped(const char *why) {
  std::fprintf(stderr, "%s\n", why);
  std::fflush(nullptr);
  std::_Exit(1);
}

template <class Do> auto only(Do what) -> decltype(what(*one)) {
  if (!one) stopped("no participant: call precicec_createParticipant first");
  try {
    return what(*one);
  } catch (const std::exception &error) {
    stopped(error.what());
  }
}

using Ids = precice::span<const int>;
using Values = precice::span<const double>;

std::size_t times(int size, int width) {
  if (size < 0) stopped("a number of vertices is negative");
  return std::size_t(size) * std::size_t(width);
}

}  // namespace

extern "C" {

void precicec_createParticipant(const char *name, const char *config, int rank, int size) {
  try {
    one.reset(new precice::Participant(name, config, rank, size));
  } catch (const std::exception &error) {
    stopped(error.what());
  }
}
void precicec_createParticipant_withCommunicator(const char *name, const char *config, int rank, int size, void *) {
  precicec_createParticipant(name, config, rank, size);
}
void precicec_initialize() {
  only([](auto &p) { p.initialize(); });
}
void precicec_advance(double step) {
  only([&](auto &p) { p.advance(step); });
}
void precicec_finalize() {
  only([](auto &p) { p.finalize(); });
  one.reset();
}
int precicec_getMeshDimensions(const char *mesh) {
  return only([&](auto &p) { return p.getMeshDimensions(mesh); });
}
int precicec_getDataDimensions(const char *mesh, const char *data) {
  return only([&](auto &p) { return p.getDataDimensions(mesh, data); });
}
int precicec_isCouplingOngoing() {
  return only([](auto &p) { return int(p.isCouplingOngoing()); });
}
int precicec_isTimeWindowComplete() {
  return only([](auto &p) { return int(p.isTimeWindowComplete()); });
}
double precicec_getMaxTimeStepSize() {
  return only([](auto &p) { return p.getMaxTimeStepSize(); });
}
int precicec_requiresInitialData() {
  return only([](auto &p) { return int(p.requiresInitialData()); });
}
int precicec_requiresWritingCheckpoint() {
  return only([](auto &p) { return int(p.requiresWritingCheckpoint()); });
}
int precicec_requiresReadingCheckpoint() {
  return only([](auto &p) { return int(p.requiresReadingCheckpoint()); });
}
int precicec_requiresMeshConnectivityFor(const char *mesh) {
  return only([&](auto &p) { return int(p.requiresMeshConnectivityFor(mesh)); });
}
void precicec_resetMesh(const char *mesh) {
  only([&](auto &p) { p.resetMesh(mesh); });
}
int precicec_setMeshVertex(const char *mesh, const double *point) {
  return only([&](auto &p) { return p.setMeshVertex(mesh, Values(point, times(1, p.getMeshDimensions(mesh)))); });
}
int precicec_getMeshVertexSize(const char *mesh) {
  return only([&](auto &p) { return p.getMeshVertexSize(mesh); });
}
void precicec_setMeshVertices(const char *mesh, int size, const double *points, int *ids) {
  only([&](auto &p) {
    p.setMeshVertices(mesh, Values(points, times(size, p.getMeshDimensions(mesh))),
                      precice::span<int>(ids, times(size, 1)));
  });
}
void precicec_setMeshEdge(const char *mesh, int a, int b) {
  only([&](auto &p) { p.setMeshEdge(mesh, a, b); });
}
void precicec_setMeshEdges(const char *mesh, int size, const int *ids) {
  only([&](auto &p) { p.setMeshEdges(mesh, Ids(ids, times(size, 2))); });
}
void precicec_setMeshTriangle(const char *mesh, int a, int b, int c) {
  only([&](auto &p) { p.setMeshTriangle(mesh, a, b, c); });
}
void precicec_setMeshTriangles(const char *mesh, int size, const int *ids) {
  only([&](auto &p) { p.setMeshTriangles(mesh, Ids(ids, times(size, 3))); });
}
void precicec_setMeshQuad(const char *mesh, int a, int b, int c, int d) {
  only([&](auto &p) { p.setMeshQuad(mesh, a, b, c, d); });
}
void precicec_setMeshQuads(const char *mesh, int size, const int *ids) {
  only([&](auto &p) { p.setMeshQuads(mesh, Ids(ids, times(size, 4))); });
}
void precicec_setMeshTetrahedron(const char *mesh, int a, int b, int c, int d) {
  only([&](auto &p) { p.setMeshTetrahedron(mesh, a, b, c, d); });
}
void precicec_setMeshTetrahedra(const char *mesh, int size, const int *ids) {
  only([&](auto &p) { p.setMeshTetrahedra(mesh, Ids(ids, times(size, 4))); });
}
void precicec_writeData(const char *mesh, const char *data, int size, const int *ids, const double *values) {
  only([&](auto &p) {
    p.writeData(mesh, data, Ids(ids, times(size, 1)), Values(values, times(size, p.getDataDimensions(mesh, data))));
  });
}
void precicec_readData(const char *mesh, const char *data, int size, const int *ids, double after, double *values) {
  only([&](auto &p) {
    p.readData(mesh, data, Ids(ids, times(size, 1)), after,
               precice::span<double>(values, times(size, p.getDataDimensions(mesh, data))));
  });
}
void precicec_writeAndMapData(const char *mesh, const char *data, int size, const double *coordinates,
                              const double *values) {
  only([&](auto &p) {
    p.writeAndMapData(mesh, data, Values(coordinates, times(size, p.getMeshDimensions(mesh))),
                      Values(values, times(size, p.getDataDimensions(mesh, data))));
  });
}
void precicec_mapAndReadData(const char *mesh, const char *data, int size, const double *coordinates, double after,
                             double *values) {
  only([&](auto &p) {
    p.mapAndReadData(mesh, data, Values(coordinates, times(size, p.getMeshDimensions(mesh))), after,
                     precice::span<double>(values, times(size, p.getDataDimensions(mesh, data))));
  });
}
void precicec_setMeshAccessRegion(const char *mesh, const double *box) {
  only([&](auto &p) { p.setMeshAccessRegion(mesh, Values(box, times(2, p.getMeshDimensions(mesh)))); });
}
void precicec_getMeshVertexIDsAndCoordinates(const char *mesh, int size, int *ids, double *points) {
  only([&](auto &p) {
    p.getMeshVertexIDsAndCoordinates(mesh, precice::span<int>(ids, times(size, 1)),
                                     precice::span<double>(points, times(size, p.getMeshDimensions(mesh))));
  });
}
int precicec_requiresGradientDataFor(const char *mesh, const char *data) {
  return only([&](auto &p) { return int(p.requiresGradientDataFor(mesh, data)); });
}
void precicec_writeGradientData(const char *mesh, const char *data, int size, const int *ids,
                                const double *gradients) {
  only([&](auto &p) {
    const int width = p.getDataDimensions(mesh, data) * p.getMeshDimensions(mesh);
    p.writeGradientData(mesh, data, Ids(ids, times(size, 1)), Values(gradients, times(size, width)));
  });
}
const char *precicec_getVersionInformation() {
  static const std::string version = precice::getVersionInformation();
  return version.c_str();
}
void precicec_startProfilingSection(const char *) {}
void precicec_stopLastProfilingSection() {}

}  // extern "C"
