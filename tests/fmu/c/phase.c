/* A phase x' = u that is brought back by one turn when it has grown beyond pi. Step events. */
enum { TIME, X, DX, U, TURNS, N_VARIABLES };
#define N_STATES 1
#define N_INPUTS 1
#define N_INDICATORS 0
#define HAS_STEP_EVENTS
#include "model.h"
static const unsigned state_vr[] = {X}, derivative_vr[] = {DX}, input_vr[] = {U};

static void defaults(Model *m) { (void)m; }
static void evaluate(Model *m) { m->r[DX] = m->r[U]; }
static double partial(const Model *m, unsigned of, unsigned by) { (void)m; return of == by || (of == DX && by == U); }
static int step_event(const Model *m) { return m->r[X] > 3.141592653589793; }
static int event(Model *m) {
    if (!step_event(m)) return 0;
    m->r[X] -= 2.0 * 3.141592653589793;
    m->r[TURNS] += 1.0;
    return 1;
}
static double cross(Model *m, double u[][ORDERS], double h) { (void)m; (void)u; return h; }
static void indicators(const Model *m, double *z) { (void)m; (void)z; }
#include "event_hooks.h"
