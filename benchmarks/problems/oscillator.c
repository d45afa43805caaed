/* One mass of the two-mass oscillator as an FMI 2.0 co-simulation FMU, advanced exactly for inputs that are polynomials of
 * degree 3 or less over the step.
 *
 * VARIANT 0 takes the force f; VARIANT 1 owns the coupling spring: it takes the motion of the other mass and gives the
 * force F on it. The propagation matrices are kept as long as the step size and the parameters stay the same, so that a
 * step costs a few nanoseconds and what is measured is the master. Types are written out: no headers are needed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef double Real;
typedef int Integer;
typedef const char *String;
typedef int Status; /* 0 OK, 3 error */
typedef unsigned Reference;

enum { TIME, M, C, D, CK, DK, X, V, U1, U2, F, N_VARIABLES };
#define N_INPUTS (VARIANT == 0 ? 1 : 2)

#define ORDERS 4

typedef struct {
    double r[N_VARIABLES];
    double slope[2][ORDERS]; /* Taylor coefficients of the inputs beyond the value */
    int degree;              /* 0: inputs are held */
    double phi[2][2], gamma[ORDERS][2][2], h; /* h = 0: not known */
} Mass;

/* Exact propagation over h by Taylor series: of the free motion, and of the response to inputs tau^j. */
static void response(const Mass *m, double h, double x, double v, const double *f, double *end) {
    const double *r = m->r;
    double a = -(r[C] + (VARIANT ? r[CK] : 0.0)) / r[M], b = -(r[D] + (VARIANT ? r[DK] : 0.0)) / r[M], power = h;
    end[0] = x; end[1] = v;
    for (int k = 0; k < 60; k++) {
        double nx = h * v / (k + 1), nv = (h * (a * x + b * v) + (k < ORDERS ? power * f[k] : 0.0)) / (k + 1);
        end[0] += nx; end[1] += nv; x = nx; v = nv;
        power *= h;
    }
}
static void propagate(Mass *m, double h) {
    const double *r = m->r, by[2] = {(VARIANT ? r[CK] : 1.0) / r[M], r[DK] / r[M]};
    double end[2];
    for (int k = 0; k < 2; k++) {
        double none[ORDERS] = {0};
        response(m, h, k == 0, k == 1, none, end);
        m->phi[0][k] = end[0]; m->phi[1][k] = end[1];
        for (int j = 0; j < ORDERS; j++) {
            double f[ORDERS] = {0};
            f[j] = by[k];
            response(m, h, 0.0, 0.0, f, end);
            m->gamma[j][0][k] = end[0]; m->gamma[j][1][k] = end[1];
        }
    }
    m->h = h;
}

const char *fmi2GetTypesPlatform(void) { return "default"; }
const char *fmi2GetVersion(void) { return "2.0"; }
Status fmi2SetDebugLogging(void *c, Integer on, size_t n, const String k[]) { (void)c; (void)on; (void)n; (void)k; return 0; }

static void defaults(Mass *m) {
    memset(m, 0, sizeof *m);
    m->r[M] = 1.0; m->r[C] = m->r[CK] = 100.0; m->r[D] = m->r[DK] = 0.02;
    if (VARIANT) m->r[X] = 1.0;
}
void *fmi2Instantiate(String name, int kind, String guid, String where, const void *f, Integer visible, Integer log) {
    (void)name; (void)kind; (void)guid; (void)where; (void)f; (void)visible; (void)log;
    Mass *m = malloc(sizeof *m);
    if (m) defaults(m);
    return m;
}
void fmi2FreeInstance(void *c) { free(c); }
Status fmi2SetupExperiment(void *c, Integer d, Real tol, Real t, Integer e, Real end) {
    (void)d; (void)tol; (void)e; (void)end;
    ((Mass *)c)->r[TIME] = t;
    return 0;
}
Status fmi2EnterInitializationMode(void *c) { (void)c; return 0; }
Status fmi2ExitInitializationMode(void *c) { (void)c; return 0; }
Status fmi2Terminate(void *c) { (void)c; return 0; }
Status fmi2Reset(void *c) { defaults(c); return 0; }

Status fmi2GetReal(void *c, const Reference vr[], size_t n, Real value[]) {
    Mass *m = c;
    double *r = m->r;
    if (VARIANT) r[F] = r[CK] * (r[X] - r[U1]) + r[DK] * (r[V] - r[U2]);
    for (size_t i = 0; i < n; i++) {
        if (vr[i] >= N_VARIABLES) return 3;
        value[i] = r[vr[i]];
    }
    return 0;
}
Status fmi2SetReal(void *c, const Reference vr[], size_t n, const Real value[]) {
    Mass *m = c;
    for (size_t i = 0; i < n; i++) {
        if (vr[i] >= N_VARIABLES) return 3;
        if (vr[i] < X) m->h = 0.0;
        m->r[vr[i]] = value[i];
    }
    m->degree = 0;
    return 0;
}
#define NONE(NAME, TYPE)                                                                                              \
    Status fmi2Get##NAME(void *c, const Reference vr[], size_t n, TYPE v[]) { (void)c; (void)vr; (void)v; return n ? 3 : 0; } \
    Status fmi2Set##NAME(void *c, const Reference vr[], size_t n, const TYPE v[]) { (void)c; (void)vr; (void)v; return n ? 3 : 0; }
NONE(Integer, Integer) NONE(Boolean, Integer) NONE(String, String)

Status fmi2GetFMUstate(void *c, void **state) {
    if (!*state && !(*state = malloc(sizeof(Mass)))) return 3;
    memcpy(*state, c, sizeof(Mass));
    return 0;
}
Status fmi2SetFMUstate(void *c, void *state) { memcpy(c, state, sizeof(Mass)); return 0; }
Status fmi2FreeFMUstate(void *c, void **state) { (void)c; free(*state); *state = NULL; return 0; }
Status fmi2SerializedFMUstateSize(void *c, void *s, size_t *n) { (void)c; (void)s; *n = sizeof(Mass); return 0; }
Status fmi2SerializeFMUstate(void *c, void *s, char b[], size_t n) { (void)c; memcpy(b, s, n); return 0; }
Status fmi2DeSerializeFMUstate(void *c, const char b[], size_t n, void **s) {
    (void)c;
    if (n != sizeof(Mass) || (!*s && !(*s = malloc(n)))) return 3;
    memcpy(*s, b, n);
    return 0;
}
Status fmi2GetDirectionalDerivative(void *c, const Reference a[], size_t n, const Reference b[], size_t m, const Real s[], Real v[]) {
    (void)c; (void)a; (void)n; (void)b; (void)m; (void)s; (void)v;
    return 3;
}
Status fmi2SetRealInputDerivatives(void *c, const Reference vr[], size_t n, const Integer order[], const Real v[]) {
    static const double factorial[ORDERS] = {1.0, 1.0, 2.0, 6.0};
    Mass *m = c;
    if (!m->degree) memset(m->slope, 0, sizeof m->slope);
    for (size_t i = 0; i < n; i++) {
        if (vr[i] < U1 || vr[i] >= U1 + N_INPUTS || order[i] < 1 || order[i] >= ORDERS) return 3;
        m->slope[vr[i] - U1][order[i]] = v[i] / factorial[order[i]];
        if (order[i] > m->degree) m->degree = order[i];
    }
    return 0;
}
Status fmi2GetRealOutputDerivatives(void *c, const Reference vr[], size_t n, const Integer o[], Real v[]) { (void)c; (void)vr; (void)n; (void)o; (void)v; return 3; }

Status fmi2DoStep(void *c, Real t, Real h, Integer last) {
    Mass *m = c;
    double *r = m->r, x = r[X], v = r[V];
    (void)last;
    if (h != m->h) propagate(m, h);
    r[X] = m->phi[0][0] * x + m->phi[0][1] * v + m->gamma[0][0][0] * r[U1];
    r[V] = m->phi[1][0] * x + m->phi[1][1] * v + m->gamma[0][1][0] * r[U1];
    if (VARIANT) { r[X] += m->gamma[0][0][1] * r[U2]; r[V] += m->gamma[0][1][1] * r[U2]; }
    if (m->degree) {
        double power = 1.0;
        for (int j = 1; j <= m->degree; j++) {
            power *= h;
            for (int k = 0; k < N_INPUTS; k++) {
                r[X] += m->gamma[j][0][k] * m->slope[k][j];
                r[V] += m->gamma[j][1][k] * m->slope[k][j];
                r[U1 + k] += m->slope[k][j] * power; /* the input at the end */
            }
        }
        m->degree = 0;
    }
    r[TIME] = t + h;
    return 0;
}
Status fmi2CancelStep(void *c) { (void)c; return 3; }
Status fmi2GetStatus(void *c, int k, Status *v) { (void)c; (void)k; *v = 0; return 2; }
Status fmi2GetRealStatus(void *c, int k, Real *v) { (void)k; *v = ((Mass *)c)->r[TIME]; return 0; }
Status fmi2GetIntegerStatus(void *c, int k, Integer *v) { (void)c; (void)k; *v = 0; return 2; }
Status fmi2GetBooleanStatus(void *c, int k, Integer *v) { (void)c; (void)k; *v = 0; return 2; }
Status fmi2GetStringStatus(void *c, int k, String *v) { (void)c; (void)k; *v = ""; return 2; }
