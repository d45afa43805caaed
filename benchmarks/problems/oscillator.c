/* One mass of the two-mass oscillator as an FMI 2.0 co-simulation FMU, crossed exactly for inputs held over the step.
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

typedef struct {
    double r[N_VARIABLES];
    double phi[2][2], gamma[2][2], h; /* h = 0: not known */
} Mass;

/* Exact propagation over h: the series of exp(A h) and of its integral, in pieces short enough for twenty terms. */
static void propagate(Mass *m, double h) {
    const double *r = m->r, spring = VARIANT ? r[CK] : 0.0, damper = VARIANT ? r[DK] : 0.0;
    double a = -(r[C] + spring) / r[M], b = -(r[D] + damper) / r[M];
    double g[2] = {VARIANT ? spring / r[M] : 1.0 / r[M], damper / r[M]};
    double start[4][4] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}}; /* states x, v and inputs u1, u2 */
    int pieces = 1 + (int)(4.0 * h * (sqrt(fabs(a)) + fabs(b) + 1.0));
    for (int k = 0; k < 4; k++) {
        double *s = start[k], tau = h / pieces;
        for (int p = 0; p < pieces; p++) {
            double x = s[0], v = s[1], sx = x, sv = v;
            for (int j = 1; j <= 20; j++) {
                double nx = tau * v / j, nv = tau * (a * x + b * v + (j == 1 ? g[0] * s[2] + g[1] * s[3] : 0.0)) / j;
                sx += nx; sv += nv; x = nx; v = nv;
            }
            s[0] = sx; s[1] = sv;
        }
    }
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) { m->phi[i][k] = start[k][i]; m->gamma[i][k] = start[2 + k][i]; }
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
Status fmi2SetRealInputDerivatives(void *c, const Reference vr[], size_t n, const Integer o[], const Real v[]) { (void)c; (void)vr; (void)n; (void)o; (void)v; return 3; }
Status fmi2GetRealOutputDerivatives(void *c, const Reference vr[], size_t n, const Integer o[], Real v[]) { (void)c; (void)vr; (void)n; (void)o; (void)v; return 3; }

Status fmi2DoStep(void *c, Real t, Real h, Integer last) {
    Mass *m = c;
    double *r = m->r, x = r[X], v = r[V];
    (void)last;
    if (h != m->h) propagate(m, h);
    r[X] = m->phi[0][0] * x + m->phi[0][1] * v + m->gamma[0][0] * r[U1];
    r[V] = m->phi[1][0] * x + m->phi[1][1] * v + m->gamma[1][0] * r[U1];
    if (VARIANT) { r[X] += m->gamma[0][1] * r[U2]; r[V] += m->gamma[1][1] * r[U2]; }
    r[TIME] = t + h;
    return 0;
}
Status fmi2CancelStep(void *c) { (void)c; return 3; }
Status fmi2GetStatus(void *c, int k, Status *v) { (void)c; (void)k; *v = 0; return 2; }
Status fmi2GetRealStatus(void *c, int k, Real *v) { (void)k; *v = ((Mass *)c)->r[TIME]; return 0; }
Status fmi2GetIntegerStatus(void *c, int k, Integer *v) { (void)c; (void)k; *v = 0; return 2; }
Status fmi2GetBooleanStatus(void *c, int k, Integer *v) { (void)c; (void)k; *v = 0; return 2; }
Status fmi2GetStringStatus(void *c, int k, String *v) { (void)c; (void)k; *v = ""; return 2; }
