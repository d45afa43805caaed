// The participant interface that solvers adapted to preCICE 3 are written against, answered by a cosolve hub.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include <precice/span.hpp>

#define PRECICE_VERSION_MAJOR 3
#define PRECICE_VERSION_MINOR 4
#define PRECICE_VERSION_PATCH 1
#define PRECICE_VERSION "3.4.1"
#define PRECICE_VERSION_GREATER_EQUAL(major, minor, patch)                                                             \
  ((PRECICE_VERSION_MAJOR > (major)) ||                                                                                \
   (PRECICE_VERSION_MAJOR == (major) &&                                                                                \
    (PRECICE_VERSION_MINOR > (minor) || (PRECICE_VERSION_MINOR == (minor) && PRECICE_VERSION_PATCH >= (patch)))))

namespace precice {

using VertexID = int;

struct Error : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string getVersionInformation();

namespace impl {
class ParticipantImpl;
}

class Participant {
public:
  Participant(string_view name, string_view config, int rank, int size);
  Participant(string_view name, string_view config, int rank, int size, void *communicator);
  ~Participant();
  Participant(const Participant &) = delete;
  Participant &operator=(const Participant &) = delete;

  void initialize();
  void advance(double step);
  void finalize();

  int getMeshDimensions(string_view mesh) const;
  int getDataDimensions(string_view mesh, string_view data) const;
  bool isCouplingOngoing() const;
  bool isTimeWindowComplete() const;
  double getMaxTimeStepSize() const;
  bool requiresInitialData();
  bool requiresWritingCheckpoint();
  bool requiresReadingCheckpoint();

  bool requiresMeshConnectivityFor(string_view mesh) const;
  void resetMesh(string_view mesh);
  VertexID setMeshVertex(string_view mesh, span<const double> point);
  int getMeshVertexSize(string_view mesh) const;
  void setMeshVertices(string_view mesh, span<const double> points, span<VertexID> ids);
  void setMeshEdge(string_view mesh, VertexID a, VertexID b);
  void setMeshEdges(string_view mesh, span<const VertexID> ids);
  void setMeshTriangle(string_view mesh, VertexID a, VertexID b, VertexID c);
  void setMeshTriangles(string_view mesh, span<const VertexID> ids);
  void setMeshQuad(string_view mesh, VertexID a, VertexID b, VertexID c, VertexID d);
  void setMeshQuads(string_view mesh, span<const VertexID> ids);
  void setMeshTetrahedron(string_view mesh, VertexID a, VertexID b, VertexID c, VertexID d);
  void setMeshTetrahedra(string_view mesh, span<const VertexID> ids);

  void writeData(string_view mesh, string_view data, span<const VertexID> ids, span<const double> values);
  void readData(string_view mesh, string_view data, span<const VertexID> ids, double after,
                span<double> values) const;
  void writeAndMapData(string_view mesh, string_view data, span<const double> coordinates,
                       span<const double> values);
  void mapAndReadData(string_view mesh, string_view data, span<const double> coordinates, double after,
                      span<double> values) const;

  void setMeshAccessRegion(string_view mesh, span<const double> box) const;
  void getMeshVertexIDsAndCoordinates(string_view mesh, span<VertexID> ids, span<double> points) const;

  bool requiresGradientDataFor(string_view mesh, string_view data) const;
  void writeGradientData(string_view mesh, string_view data, span<const VertexID> ids,
                         span<const double> gradients);

  void startProfilingSection(string_view name);
  void stopLastProfilingSection();

private:
  std::unique_ptr<impl::ParticipantImpl> _impl;
};

}  // namespace precice
