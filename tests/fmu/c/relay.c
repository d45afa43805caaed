/* A relay with hysteresis: x' = -s, and s changes its sign when s x falls below -EPS. Without hysteresis it never rests. */
enum { TIME, EPS, X, DX, U, S, Z, N_VARIABLES };
#define N_STATES 1
#define N_INPUTS 1
#define N_INDICATORS 1
#include "model.h"
static const unsigned state_vr[] = {X}, derivative_vr[] = {DX}, input_vr[] = {U};

static void defaults(Model *m) { m->r[EPS] = 0.25; m->r[S] = 1.0; }
static void evaluate(Model *m) {
    m->r[DX] = -m->r[S] + m->r[U];
    m->r[Z] = m->r[S] * m->r[X] + m->r[EPS];
}
static double partial(const Model *m, unsigned of, unsigned by) { (void)m; return of == by || (of == DX && by == U); }
static void indicators(const Model *m, double *z) { z[0] = m->r[S] * m->r[X] + m->r[EPS]; }
static int event(Model *m) {
    if (m->r[S] * m->r[X] + m->r[EPS] <= 0.0) m->r[S] = -m->r[S];
    return 0;
}
static double cross(Model *m, double u[][ORDERS], double h) { (void)m; (void)u; return h; }
