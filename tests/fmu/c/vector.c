/* Three states in one array, x' = -K x + u with K = 1, 2, 3, and y = u + the next x: arrays of FMI 3.0, model exchange. */
enum { TIME, N, U, X, DX, Y, N_REFERENCES };
#define OFFSET(m, vr) ((vr) <= N ? (int)(vr) : 2 + 3 * ((int)(vr) - U))
#define LENGTH(m, vr) ((vr) <= N ? 1 : 3)
#define N_VARIABLES 14
#define N_STATES 3
#define N_INPUTS 0
#define N_INDICATORS 0
#include "model.h"
static const unsigned state_vr[] = {5, 6, 7}, derivative_vr[] = {8, 9, 10}, input_vr[] = {2};

static void defaults(Model *m) { m->r[N] = 3; m->r[5] = m->r[6] = m->r[7] = 1.0; }
static void evaluate(Model *m) {
    for (int i = 0; i < 3; i++) {
        m->r[8 + i] = -(1.0 + i) * m->r[5 + i] + m->r[2 + i];
        m->r[11 + i] = m->r[2 + i] + m->r[5 + (i + 1) % 3];
    }
}
static double partial(const Model *m, unsigned of, unsigned by) { /* flat positions */
    (void)m;
    if (of >= 8 && of < 11) return by == of - 3 ? -(double)(of - 7) : by == of - 6;
    if (of >= 11) return by == of - 9 || by == 5 + (of - 11 + 1) % 3;
    return of == by;
}
static int event(Model *m) { (void)m; return 0; }
static double cross(Model *m, double u[][ORDERS], double h) { (void)m; (void)u; return h; }
static void indicators(const Model *m, double *z) { (void)m; (void)z; }
