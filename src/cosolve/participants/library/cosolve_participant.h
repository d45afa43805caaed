/* A solver that owns its time loop, coupled by a cosolve hub: the client for C and whatever calls C.

   Functions that can fail return 0 when all went well, and -1 when not; cosolve_error() has the sentence then. Questions
   return 1 for yes, 0 for no, -1 where something is wrong; times are NaN then. Points are numbered from 0; a null
   pointer for `points` means all of them. cosolve_participant.hpp is the same in C++, with an example. */
#ifndef COSOLVE_PARTICIPANT_H
#define COSOLVE_PARTICIPANT_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cosolve_participant cosolve_participant;

enum cosolve_cell { COSOLVE_LINE, COSOLVE_TRIANGLE, COSOLVE_QUADRILATERAL, COSOLVE_TETRAHEDRON };

/* Null where there is no hub. `address` may be null or empty: the hub that started this process. */
cosolve_participant *cosolve_open(const char *name, const char *address, double patience);
/* One of the processes of a solver: points and values are those of its rank, cosolve_start and cosolve_advance wait for
   all ranks. */
cosolve_participant *cosolve_open_rank(const char *name, const char *address, double patience, int rank, int size);
/* Says goodbye to the hub; the participant is gone then. */
void cosolve_close(cosolve_participant *participant);
const char *cosolve_error(void);

int cosolve_dimensions(cosolve_participant *participant, const char *mesh);
int cosolve_components(cosolve_participant *participant, const char *mesh, const char *data);
/* The number of the first of them. */
int cosolve_set_points(cosolve_participant *participant, const char *mesh, int count, const double *points);
int cosolve_needs_cells(cosolve_participant *participant, const char *mesh);
int cosolve_set_cells(cosolve_participant *participant, const char *mesh, int kind, int count, const int *corners);
int cosolve_set_region(cosolve_participant *participant, const char *mesh, const double *box);
int cosolve_needs_initial_data(cosolve_participant *participant);
int cosolve_needs_gradient(cosolve_participant *participant, const char *mesh, const char *data);
int cosolve_start(cosolve_participant *participant);

int cosolve_point_count(cosolve_participant *participant, const char *mesh);
int cosolve_get_points(cosolve_participant *participant, const char *mesh, double *points);
int cosolve_write(cosolve_participant *participant, const char *mesh, const char *data, int count, const int *points,
                  const double *values);
int cosolve_write_gradient(cosolve_participant *participant, const char *mesh, const char *data, int count,
                           const int *points, const double *gradients);
int cosolve_read(cosolve_participant *participant, const char *mesh, const char *data, double after, int count,
                 const int *points, double *values);
int cosolve_read_at(cosolve_participant *participant, const char *mesh, const char *data, double after, int count,
                    const double *coordinates, double *values);
int cosolve_write_at(cosolve_participant *participant, const char *mesh, const char *data, int count,
                     const double *coordinates, const double *values);
int cosolve_advance(cosolve_participant *participant, double step);
double cosolve_time(cosolve_participant *participant);
double cosolve_step_limit(cosolve_participant *participant);
/* 0 also once a call has failed for good (the hub is gone, another participant has died): a loop that asks nothing else
   comes to its end. */
int cosolve_ongoing(cosolve_participant *participant);
int cosolve_window_complete(cosolve_participant *participant);
int cosolve_must_save(cosolve_participant *participant);
int cosolve_must_restore(cosolve_participant *participant);

#ifdef __cplusplus
}
#endif
#endif
