/* A ball that bounces on the ground: x' = v, v' = -G + u (u held over a step), v -> -E v where x reaches zero. */
enum { TIME, G, E, X, V, DX, DV, U, BOUNCES, RISING, Z, N_VARIABLES };
#define N_STATES 2
#define N_INPUTS 1
#define N_INDICATORS 1
#include "model.h"
static const unsigned state_vr[] = {X, V}, derivative_vr[] = {DX, DV}, input_vr[] = {U};

static void defaults(Model *m) { m->r[G] = 9.81; m->r[E] = 0.7; m->r[X] = 1.0; }

static void evaluate(Model *m) {
    double *r = m->r;
    r[DX] = r[V];
    r[DV] = -r[G] + r[U];
    r[RISING] = r[V] > 0.0;
    r[Z] = r[X];
}

static double partial(const Model *m, unsigned of, unsigned by) {
    (void)m;
    return of == by ? 1.0 : of == DX ? by == V : of == DV ? by == U : 0.0;
}

static double cross(Model *m, double u[][ORDERS], double h) {
    double *r = m->r, a = -r[G] + u[0][0], x = r[X], v = r[V], tau = h;
    if (a < 0.0) { /* the flight ends where x + v tau + a tau^2 / 2 = 0, the later root */
        double root = v * v - 2.0 * a * x;
        double impact = root >= 0.0 ? -(v + sqrt(root)) / a : h;
        if (impact > 1e-12 && impact <= h) {
            r[X] = 0.0;
            r[V] = v + a * impact;
            m->event_pending = 1;
            return impact;
        }
    }
    r[X] = x + v * tau + 0.5 * a * tau * tau;
    r[V] = v + a * tau;
    return h;
}

static void indicators(const Model *m, double *z) { z[0] = m->r[X]; }

static int event(Model *m) {
    if (m->r[X] > 1e-9 || m->r[V] >= 0.0) return 0;
    m->r[X] = 0.0;
    m->r[V] = -m->r[E] * m->r[V];
    m->r[BOUNCES] += 1.0;
    return 1;
}
