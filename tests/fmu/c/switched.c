/* An integrator x' = GAIN u while ON: a Boolean and a whole number as inputs, which change at events only. Without states
 * (STATELESS) it only passes y = GAIN u on. */
enum { TIME, X, DX, U, ON, GAIN, Y, CHANGES, SCALE, N_VARIABLES };
#ifdef STATELESS
#define N_STATES 0
#else
#define N_STATES 1
#endif
#define N_INPUTS 1
#define N_INDICATORS 0
#include "model.h"
static const unsigned state_vr[] = {X}, derivative_vr[] = {DX}, input_vr[] = {U};

static void defaults(Model *m) { m->r[ON] = 1.0; m->r[GAIN] = 1.0; m->r[SCALE] = 1.0; }
static void evaluate(Model *m) {
    m->r[Y] = m->r[SCALE] * m->r[GAIN] * m->r[U];
    m->r[DX] = m->r[ON] != 0.0 ? m->r[Y] : 0.0;
}
static double partial(const Model *m, unsigned of, unsigned by) {
    double slope = m->r[SCALE] * m->r[GAIN];
    return of == by ? 1.0 : by != U ? 0.0 : of == Y ? slope : of == DX && m->r[ON] != 0.0 ? slope : 0.0;
}
static int event(Model *m) { m->r[CHANGES] += 1.0; return 0; }
static double cross(Model *m, double u[][ORDERS], double h) { (void)m; (void)u; return h; }
static void indicators(const Model *m, double *z) { (void)m; (void)z; }
