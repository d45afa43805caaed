/* Every type of variable: y' = on * gain * rate * u with rate 0, 1, 10 by mode; count, above, half follow y. */
enum { TIME, U, ON, GAIN, MODE, SCALE, Y, COUNT, ABOVE, STATE, HALF, FINE, N_VARIABLES };
#define LABEL 1000
#define MESSAGE 1001
#define N_TEXTS 2
#define N_STATES 0
#define N_INPUTS 0
#define N_INDICATORS 0
#include "model.h"
static const unsigned state_vr[] = {0}, derivative_vr[] = {0}, input_vr[] = {0};

static void defaults(Model *m) {
    m->r[ON] = 1; m->r[GAIN] = 1; m->r[MODE] = 2; m->r[SCALE] = 1.0; m->r[FINE] = 1;
    strcpy(m->text[0], "plain");
}

static void evaluate(Model *m) {
    double *r = m->r;
    r[COUNT] = floor(r[Y]);
    r[ABOVE] = r[Y] > 1.0;
    r[STATE] = r[MODE];
    r[HALF] = (float)(0.5 * r[Y]);
    snprintf(m->text[1], TEXT_SIZE, "%.40s at %.3f", m->text[0], r[Y]);
}

static double partial(const Model *m, unsigned of, unsigned by) { (void)m; return of == by; }

static double cross(Model *m, double u[][ORDERS], double h) {
    double *r = m->r, rate = r[MODE] == 1 ? 0.0 : r[MODE] == 2 ? 1.0 : 10.0;
    (void)u;
    r[Y] += h * r[SCALE] * (r[ON] != 0.0) * r[GAIN] * rate * r[U];
    return h;
}

static void indicators(const Model *m, double *z) { (void)m; (void)z; }
static int event(Model *m) { (void)m; return 0; }
