/* The same interface in C: one participant per process; whatever is not allowed ends it with a sentence. */
#ifndef COSOLVE_PRECICE_C_H
#define COSOLVE_PRECICE_C_H

#include <precice/Version.h>

#ifdef __cplusplus
extern "C" {
#endif

void precicec_createParticipant(const char *name, const char *config, int rank, int size);
void precicec_createParticipant_withCommunicator(const char *name, const char *config, int rank, int size,
                                                 void *communicator);
void precicec_initialize(void);
void precicec_advance(double step);
void precicec_finalize(void);

int precicec_getMeshDimensions(const char *mesh);
int precicec_getDataDimensions(const char *mesh, const char *data);
int precicec_isCouplingOngoing(void);
int precicec_isTimeWindowComplete(void);
double precicec_getMaxTimeStepSize(void);
int precicec_requiresInitialData(void);
int precicec_requiresWritingCheckpoint(void);
int precicec_requiresReadingCheckpoint(void);

int precicec_requiresMeshConnectivityFor(const char *mesh);
void precicec_resetMesh(const char *mesh);
int precicec_setMeshVertex(const char *mesh, const double *point);
int precicec_getMeshVertexSize(const char *mesh);
void precicec_setMeshVertices(const char *mesh, int size, const double *points, int *ids);
void precicec_setMeshEdge(const char *mesh, int a, int b);
void precicec_setMeshEdges(const char *mesh, int size, const int *ids);
void precicec_setMeshTriangle(const char *mesh, int a, int b, int c);
void precicec_setMeshTriangles(const char *mesh, int size, const int *ids);
void precicec_setMeshQuad(const char *mesh, int a, int b, int c, int d);
void precicec_setMeshQuads(const char *mesh, int size, const int *ids);
void precicec_setMeshTetrahedron(const char *mesh, int a, int b, int c, int d);
void precicec_setMeshTetrahedra(const char *mesh, int size, const int *ids);

void precicec_writeData(const char *mesh, const char *data, int size, const int *ids, const double *values);
void precicec_readData(const char *mesh, const char *data, int size, const int *ids, double after, double *values);
void precicec_writeAndMapData(const char *mesh, const char *data, int size, const double *coordinates,
                              const double *values);
void precicec_mapAndReadData(const char *mesh, const char *data, int size, const double *coordinates, double after,
                             double *values);
void precicec_setMeshAccessRegion(const char *mesh, const double *box);
void precicec_getMeshVertexIDsAndCoordinates(const char *mesh, int size, int *ids, double *points);
int precicec_requiresGradientDataFor(const char *mesh, const char *data);
void precicec_writeGradientData(const char *mesh, const char *data, int size, const int *ids, const double *gradients);

const char *precicec_getVersionInformation(void);
void precicec_startProfilingSection(const char *name);
void precicec_stopLastProfilingSection(void);

#ifdef __cplusplus
}
#endif
#endif
