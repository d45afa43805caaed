/* What the FMI wrappers (fmi2.c, fmi3.c) and the models share.
 *
 * A model file defines N_VARIABLES, N_STATES, N_INPUTS, N_INDICATORS, the tables state_vr, derivative_vr and input_vr,
 * and the functions below. All numbers live in one array r, by value reference; Booleans and integers too. Copying the
 * struct copies the whole state, so rollback is exact by construction.
 *
 *   defaults(m)            start values of all variables
 *   evaluate(m)            derivatives and outputs from time, parameters, states and inputs
 *   cross(m, u, h)         advance the states by h (< h where the model stops for an event: returns how far it came);
 *                          u[i][j] is the coefficient of tau^j of input i
 *   partial(m, a, b)       d r[a] / d r[b] at the present point
 *   indicators(m, z)       event indicators
 *   event(m)               handle the event of this instant; 1 where states changed
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ORDERS 6    /* coefficients of an input over a step: degree 5 */
#define MAX_TEXTS 4 /* strings have value references 1000, 1001, ... */
#define TEXT_SIZE 64

enum { INSTANTIATED, INITIALISING, STEPPING, EVENT, CONTINUOUS, TERMINATED, CONFIGURING };
enum { NO_FAILURE, DISCARD, ERROR, FATAL, CRASH, HANG, WARNING, NOT_A_NUMBER, ENDS, TOO_LONG, STOPS };

#include MODEL_FILE

#ifndef OFFSET
#define OFFSET(m, vr) (vr)
#define LENGTH(m, vr) 1
#endif
#ifndef N_TEXTS
#define N_TEXTS 0
#endif

static double horner(const double *c, double tau) {
    double value = c[ORDERS - 1];
    for (int j = ORDERS - 2; j >= 0; j--) value = value * tau + c[j];
    return value;
}

/* The coefficients of p(tau + shift). */
static void shift(double *c, double by) {
    for (int i = 0; i < ORDERS - 1; i++)
        for (int j = ORDERS - 2; j >= i; j--) c[j] += by * c[j + 1];
}

static double fail_at(const Model *m) {
#ifdef HAS_FAILURES
    return m->r[FAIL_AT];
#else
    (void)m;
    return 1e300;
#endif
}

/* What goes wrong on purpose in a step that ends after FAIL_AT: a failure to report, or none. */
static int failure(Model *m, double t1) {
#ifdef HAS_FAILURES
    int kind = (int)m->r[FAILURE];
    if (kind != WARNING && t1 <= m->r[FAIL_AT] * (1.0 + 1e-9)) return NO_FAILURE; /* times are rounded */
    if (kind == CRASH) *(volatile int *)8 = 1;
    if (kind == HANG) for (struct timespec nap = {0, 10000000};;) nanosleep(&nap, NULL);
    return kind;
#else
    (void)m; (void)t1;
    return NO_FAILURE;
#endif
}
