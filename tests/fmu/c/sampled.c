/* A tank x' = -x + d with a sampled controller: at t = 0, TS, 2 TS, ... it sets d = K (u - x). Time events. */
enum { TIME, TS, K, X, DX, U, HELD, COUNT, N_VARIABLES };
#define N_STATES 1
#define N_INPUTS 1
#define N_INDICATORS 0
#define HAS_TIME_EVENTS
#include "model.h"
static const unsigned state_vr[] = {X}, derivative_vr[] = {DX}, input_vr[] = {U};

static void defaults(Model *m) { m->r[TS] = 0.1; m->r[K] = 2.0; m->r[X] = 1.0; }
static void evaluate(Model *m) { m->r[DX] = -m->r[X] + m->r[HELD]; }
static double partial(const Model *m, unsigned of, unsigned by) {
    (void)m;
    return of == by ? 1.0 : of == DX && by == X ? -1.0 : 0.0;
}
static double next_event(const Model *m) { return m->r[COUNT] * m->r[TS]; }
static int event(Model *m) {
    if (m->t < next_event(m)) return 0;
    m->r[HELD] = m->r[K] * (m->r[U] - m->r[X]);
    m->r[COUNT] += 1.0;
    return 0;
}
static double cross(Model *m, double u[][ORDERS], double h) { (void)m; (void)u; return h; }
static void indicators(const Model *m, double *z) { (void)m; (void)z; }
#include "event_hooks.h"
