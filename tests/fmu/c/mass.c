/* A mass on a spring and a damper, advanced exactly for polynomial inputs. VARIANT says what couples it:
 *   0 a force f;  1 the motion of a foreign mass over its own copy of the coupling spring;
 *   2 the same, and it gives the spring's force F;  3 springs to a left and a right neighbour. */
enum { TIME, M, C, D, CK, DK, X, V, DX, DV, U1, U2, U3, U4, F, FAIL_AT, FAILURE, N_VARIABLES };
#define N_STATES 2
#define N_INDICATORS 0
#define HAS_FAILURES
#include "model.h"
#if VARIANT == 0
#define N_INPUTS 1
#elif VARIANT == 3
#define N_INPUTS 4
#else
#define N_INPUTS 2
#endif
static const unsigned state_vr[] = {X, V}, derivative_vr[] = {DX, DV}, input_vr[] = {U1, U2, U3, U4};

static void defaults(Model *m) {
    double *r = m->r;
    r[M] = 1.0; r[C] = 1e4; r[D] = 2.0; r[CK] = 1e6; r[DK] = 14.1421;
    r[FAIL_AT] = 1e300;
#ifdef FAILS
    r[FAILURE] = FAILS; r[FAIL_AT] = FAILS_AT;
#endif
}

/* v' = a x + b v + sum(g_i u_i) */
static void law(const Model *m, double *a, double *b, double *g) {
    const double *r = m->r;
    double c = r[C], d = r[D];
#if VARIANT == 0
    g[0] = 1.0 / r[M];
#else
    for (int i = 0; i < N_INPUTS; i += 2) {
        c += r[CK]; d += r[DK];
        g[i] = r[CK] / r[M]; g[i + 1] = r[DK] / r[M];
    }
#endif
    *a = -c / r[M]; *b = -d / r[M];
}

static void evaluate(Model *m) {
    double *r = m->r, a, b, g[4];
    law(m, &a, &b, g);
    r[DX] = r[V];
    r[DV] = a * r[X] + b * r[V];
    for (int i = 0; i < N_INPUTS; i++) r[DV] += g[i] * r[U1 + i];
    r[F] = r[CK] * (r[X] - r[U1]) + r[DK] * (r[V] - r[U2]);
}

static double partial(const Model *m, unsigned of, unsigned by) {
    double a, b, g[4];
    law(m, &a, &b, g);
    if (of == by) return 1.0;
    if (of == DX) return by == V;
    if (of == DV) return by == X ? a : by == V ? b : by >= U1 && by < U1 + N_INPUTS ? g[by - U1] : 0.0;
    if (of == F) return by == X ? m->r[CK] : by == V ? m->r[DK] : by == U1 ? -m->r[CK] : by == U2 ? -m->r[DK] : 0.0;
    return 0.0;
}

static void shift(double *c, double by);

static double cross(Model *m, double u[][ORDERS], double h) {
    double a, b, g[4], f[ORDERS] = {0};
    law(m, &a, &b, g);
    for (int j = 0; j < ORDERS; j++)
        for (int i = 0; i < N_INPUTS; i++) f[j] += g[i] * u[i][j];
    int pieces = 1 + (int)((sqrt(fabs(a)) + fabs(b)) * fabs(h));
    double tau = h / pieces;
    for (int p = 0; p < pieces; p++) { /* Taylor series of the solution: with |A| tau < 1 thirty terms are exact */
        double x = m->r[X], v = m->r[V], power = tau, sx = x, sv = v;
        for (int k = 0; k < 30; k++) {
            double nx = tau * v / (k + 1);
            double nv = (tau * (a * x + b * v) + (k < ORDERS ? power * f[k] : 0.0)) / (k + 1);
            sx += nx; sv += nv; x = nx; v = nv;
            power *= tau;
        }
        m->r[X] = sx; m->r[V] = sv;
        if (p + 1 < pieces) shift(f, tau);
    }
    return h;
}

static void indicators(const Model *m, double *z) { (void)m; (void)z; }
static int event(Model *m) { (void)m; return 0; }
