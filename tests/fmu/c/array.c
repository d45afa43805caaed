/* N decaying numbers x' = -k x + u (u held over a step), y = S x with a matrix S (y_i = x_i + x_{i+1}); arrays, FMI 3.0. */
#define MOST 8
enum { TIME, N, K, U, X, DX, Y, N_REFERENCES };
#define OFFSET(m, vr) ((vr) <= N ? (int)(vr) : 2 + ((int)(vr) - K) * MOST)
#define LENGTH(m, vr) ((vr) <= N ? 1 : (int)(m)->r[N])
#define N_VARIABLES (2 + 5 * MOST)
#define N_STATES 0
#define N_INPUTS 0
#define N_INDICATORS 0
#include "model.h"
static const unsigned state_vr[] = {0}, derivative_vr[] = {0}, input_vr[] = {0};

static void defaults(Model *m) {
    m->r[N] = 3;
    for (int i = 0; i < MOST; i++) { m->r[OFFSET(m, K) + i] = 1.0 + i; m->r[OFFSET(m, X) + i] = 1.0; }
}

static void evaluate(Model *m) {
    int n = (int)m->r[N];
    const double *k = m->r + OFFSET(m, K), *u = m->r + OFFSET(m, U), *x = m->r + OFFSET(m, X);
    for (int i = 0; i < n; i++) {
        m->r[OFFSET(m, DX) + i] = -k[i] * x[i] + u[i];
        m->r[OFFSET(m, Y) + i] = x[i] + x[(i + 1) % n];
    }
}

static double partial(const Model *m, unsigned of, unsigned by) { /* flat positions, not value references */
    int n = (int)m->r[N], row, column;
    if (of == by) return 1.0;
    if (of >= (unsigned)OFFSET(m, DX) && of < (unsigned)OFFSET(m, Y)) {
        row = of - OFFSET(m, DX);
        if (by >= (unsigned)OFFSET(m, U) && by < (unsigned)OFFSET(m, X)) return row == (int)by - OFFSET(m, U);
        column = (int)by - OFFSET(m, X);
        return row == column ? -m->r[OFFSET(m, K) + row] : 0.0;
    }
    if (of >= (unsigned)OFFSET(m, Y)) {
        row = of - OFFSET(m, Y);
        column = (int)by - OFFSET(m, X);
        return (column >= 0 && column < n) && (row == column || (row + 1) % n == column);
    }
    return 0.0;
}

static double cross(Model *m, double u[][ORDERS], double h) {
    (void)u;
    for (int i = 0; i < (int)m->r[N]; i++) {
        double k = m->r[OFFSET(m, K) + i], goal = m->r[OFFSET(m, U) + i] / k, *x = m->r + OFFSET(m, X) + i;
        *x = goal + (*x - goal) * exp(-k * h);
    }
    return h;
}

static void indicators(const Model *m, double *z) { (void)m; (void)z; }
static int event(Model *m) { (void)m; return 0; }
