/* A driven pendulum x'' = -W^2 sin(x) - D x' + u cos(x), y = x + 0.1 u: its partials change within a step. */
enum { TIME, W, D, X, V, DX, DV, U, Y, N_VARIABLES };
#define N_STATES 2
#define N_INPUTS 1
#define N_INDICATORS 0
#include "model.h"
static const unsigned state_vr[] = {X, V}, derivative_vr[] = {DX, DV}, input_vr[] = {U};

static void defaults(Model *m) { m->r[W] = 3.0; m->r[D] = 0.2; m->r[X] = 1.0; }

static void evaluate(Model *m) {
    double *r = m->r;
    r[DX] = r[V];
    r[DV] = -r[W] * r[W] * sin(r[X]) - r[D] * r[V] + r[U] * cos(r[X]);
    r[Y] = r[X] + 0.1 * r[U];
}

static double partial(const Model *m, unsigned of, unsigned by) {
    const double *r = m->r;
    if (of == by) return 1.0;
    if (of == DX) return by == V;
    if (of == DV) return by == X ? -r[W] * r[W] * cos(r[X]) - r[U] * sin(r[X]) : by == V ? -r[D] : by == U ? cos(r[X]) : 0.0;
    if (of == Y) return by == X ? 1.0 : by == U ? 0.1 : 0.0;
    return 0.0;
}

static double horner(const double *c, double tau);

static void slope(Model *m, const double *u, double tau, const double *x, double *dx) {
    m->r[X] = x[0]; m->r[V] = x[1]; m->r[U] = horner(u, tau);
    evaluate(m);
    dx[0] = m->r[DX]; dx[1] = m->r[DV];
}

static double cross(Model *m, double u[][ORDERS], double h) { /* classical Runge-Kutta, steps below 1/400 */
    int steps = 1 + (int)(400.0 * h);
    double tau = h / steps, x[2] = {m->r[X], m->r[V]}, k[4][2], z[2];
    for (int n = 0; n < steps; n++) {
        double t = n * tau;
        slope(m, u[0], t, x, k[0]);
        for (int i = 0; i < 2; i++) z[i] = x[i] + 0.5 * tau * k[0][i];
        slope(m, u[0], t + 0.5 * tau, z, k[1]);
        for (int i = 0; i < 2; i++) z[i] = x[i] + 0.5 * tau * k[1][i];
        slope(m, u[0], t + 0.5 * tau, z, k[2]);
        for (int i = 0; i < 2; i++) z[i] = x[i] + tau * k[2][i];
        slope(m, u[0], t + tau, z, k[3]);
        for (int i = 0; i < 2; i++) x[i] += tau / 6.0 * (k[0][i] + 2 * k[1][i] + 2 * k[2][i] + k[3][i]);
    }
    m->r[X] = x[0]; m->r[V] = x[1];
    return h;
}

static void indicators(const Model *m, double *z) { (void)m; (void)z; }
static int event(Model *m) { (void)m; return 0; }
