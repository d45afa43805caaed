/* FMI 1.0 wrapper around a model file (see fmu.h): co-simulation and model exchange. Functions have the model identifier
 * before their names. Calls in an order that FMI 1.0 does not allow are errors. */
#include <stddef.h>
#include "fmi1Functions.h"
#include "fmu.h"

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define F(name) JOIN(IDENTIFIER, fmi##name)

typedef struct {
    Model m;
    double last_time, stop;
    int has_stop, slave, in_step; /* in a step of the integrator: since the time was set last */
    fmi1CallbackLogger logger;
    void (*release)(void *);
    char name[64];
} Instance;

static fmi1Status say(Instance *s, fmi1Status status, const char *text, double number) {
    if (s->logger) s->logger(s, s->name, status, "events", text, number);
    return status;
}

const char *F(GetVersion)(void) { return "1.0"; }
const char *F(GetTypesPlatform)(void) { return "standard32"; }
const char *F(GetModelTypesPlatform)(void) { return "standard32"; }
fmi1Status F(SetDebugLogging)(fmi1Component c, fmi1Boolean on) { (void)c; (void)on; return fmi1OK; }

static Instance *made(fmi1String name, fmi1String guid, fmi1CallbackLogger logger, void *(*take)(size_t, size_t),
                      void (*release)(void *), int slave) {
    Instance *s = take(1, sizeof(Instance));
    snprintf(s->name, sizeof s->name, "%s", name);
    s->logger = logger;
    s->release = release;
    s->slave = slave;
    if (strcmp(guid, TOKEN) != 0) {
        say(s, fmi1Error, "the GUID is not the one of this library", 0);
        release(s);
        return NULL;
    }
    defaults(&s->m);
    return s;
}

fmi1Component F(InstantiateSlave)(fmi1String name, fmi1String guid, fmi1String location, fmi1String mime, fmi1Real timeout,
                                  fmi1Boolean visible, fmi1Boolean interactive, fmi1CallbackFunctions f, fmi1Boolean log) {
    (void)timeout; (void)visible; (void)interactive; (void)log;
    if (strncmp(location, "file:///", 8) != 0 || strcmp(mime, "application/x-fmu-sharedlibrary") != 0) return NULL;
    return made(name, guid, f.logger, f.allocateMemory, f.freeMemory, 1);
}
typedef struct { /* without stepFinished */
    fmi1CallbackLogger logger;
    fmi1CallbackAllocateMemory allocateMemory;
    fmi1CallbackFreeMemory freeMemory;
} ModelCallbacks;
fmi1Component F(InstantiateModel)(fmi1String name, fmi1String guid, ModelCallbacks f, fmi1Boolean log) {
    (void)log;
    return made(name, guid, f.logger, f.allocateMemory, f.freeMemory, 0);
}
void F(FreeSlaveInstance)(fmi1Component c) { ((Instance *)c)->release(c); }
void F(FreeModelInstance)(fmi1Component c) { ((Instance *)c)->release(c); }

fmi1Status F(InitializeSlave)(fmi1Component c, fmi1Real start, fmi1Boolean has_stop, fmi1Real stop) {
    Instance *s = c;
    s->m.t = start;
    s->has_stop = has_stop;
    s->stop = stop;
    s->m.mode = STEPPING;
    return fmi1OK;
}
fmi1Status F(ResetSlave)(fmi1Component c) {
    memset(&((Instance *)c)->m, 0, sizeof(Model));
    defaults(&((Instance *)c)->m);
    return fmi1OK;
}
fmi1Status F(TerminateSlave)(fmi1Component c) { ((Instance *)c)->m.mode = TERMINATED; return fmi1OK; }
fmi1Status F(Terminate)(fmi1Component c) { ((Instance *)c)->m.mode = TERMINATED; return fmi1OK; }

/* References are counted by type, so the same number may stand for a Real and a Boolean. */
static double *at(Instance *s, fmi1ValueReference vr) {
    if (vr < N_VARIABLES) return s->m.r + vr;
    say(s, fmi1Error, "value reference %.0f is out of range", vr);
    return NULL;
}
#define GET(NAME, TYPE)                                                                                              \
    fmi1Status F(Get##NAME)(fmi1Component c, const fmi1ValueReference vr[], size_t n, TYPE value[]) {                \
        Instance *s = c;                                                                                             \
        if (s->m.mode != STEPPING) return say(s, fmi1Error, "values are read before initialisation", 0);             \
        s->m.r[TIME] = s->m.t;                                                                                       \
        evaluate(&s->m);                                                                                             \
        for (size_t i = 0; i < n; i++) {                                                                             \
            double *number = at(s, vr[i]);                                                                           \
            if (!number) return fmi1Error;                                                                           \
            value[i] = (TYPE)*number;                                                                                \
        }                                                                                                            \
        return fmi1OK;                                                                                               \
    }
#define SET(NAME, TYPE)                                                                                              \
    fmi1Status F(Set##NAME)(fmi1Component c, const fmi1ValueReference vr[], size_t n, const TYPE value[]) {          \
        for (size_t i = 0; i < n; i++) {                                                                             \
            double *number = at(c, vr[i]);                                                                           \
            if (!number) return fmi1Error;                                                                           \
            *number = value[i];                                                                                      \
            memset(((Instance *)c)->m.du, 0, sizeof ((Instance *)c)->m.du);                                          \
        }                                                                                                            \
        return fmi1OK;                                                                                               \
    }
GET(Real, fmi1Real) GET(Integer, fmi1Integer) GET(Boolean, fmi1Boolean)
SET(Real, fmi1Real) SET(Integer, fmi1Integer) SET(Boolean, fmi1Boolean)

fmi1Status F(SetRealInputDerivatives)(fmi1Component c, const fmi1ValueReference vr[], size_t n, const fmi1Integer order[],
                                      const fmi1Real value[]) {
    for (size_t i = 0; i < n; i++) {
        if (vr[i] >= N_VARIABLES || order[i] < 1 || order[i] >= ORDERS) return fmi1Error;
        ((Instance *)c)->m.du[order[i]][vr[i]] = value[i];
    }
    return fmi1OK;
}

fmi1Status F(DoStep)(fmi1Component c, fmi1Real t, fmi1Real h, fmi1Boolean next) {
    Instance *s = c;
    Model *m = &s->m;
    double u[N_INPUTS + 1][ORDERS];
    if (m->mode != STEPPING) return say(s, fmi1Error, "doStep is called before the initialisation", 0);
    if (!next) return say(s, fmi1Error, "steps are not repeated", 0);
    if (fabs(t - m->t) > 1e-9 * (1.0 + fabs(t)))
        return say(s, fmi1Error, "doStep starts at another time than %.9g, where the last step ended", m->t);
    if (s->has_stop && t + h > s->stop * (1.0 + 1e-9)) return say(s, fmi1Error, "a step beyond the stop time %.9g", s->stop);
    switch (failure(m, t + h)) {
        case DISCARD: s->last_time = t + 0.25 * h; return say(s, fmi1Discard, "the solver did not converge after t = %g", t);
        case ERROR: return say(s, fmi1Error, "the tank is empty at t = %g", t);
        case FATAL: return say(s, fmi1Fatal, "out of memory at t = %g", t);
        case WARNING: say(s, fmi1Warning, "the table is extrapolated at t = %g", t); break;
    }
    for (int i = 0; i < N_INPUTS; i++) {
        double factorial = 1.0;
        u[i][0] = m->r[input_vr[i]];
        for (int j = 1; j < ORDERS; j++) {
            factorial *= j;
            u[i][j] = m->du[j][input_vr[i]] / factorial;
        }
    }
    double done = 0.0;
    while (done < h) {
        double moved = cross(m, u, h - done);
        if (m->event_pending) { event(m); m->event_pending = 0; }
        for (int i = 0; i < N_INPUTS; i++) shift(u[i], moved);
        done = moved == h - done ? h : done + moved;
    }
    for (int i = 0; i < N_INPUTS; i++) m->r[input_vr[i]] = u[i][0];
    m->t = t + h;
    return fmi1OK;
}
fmi1Status F(GetRealStatus)(fmi1Component c, const fmi1StatusKind k, fmi1Real *v) {
    if (k != fmi1LastSuccessfulTime) return fmi1Discard;
    *v = ((Instance *)c)->last_time;
    return fmi1OK;
}

/* -- model exchange ---------------------------------------------------------------------------------------- */

fmi1Status F(SetTime)(fmi1Component c, fmi1Real t) {
    ((Instance *)c)->m.t = t;
    ((Instance *)c)->in_step = 1;
    return fmi1OK;
}
fmi1Status F(Initialize)(fmi1Component c, fmi1Boolean limited, fmi1Real tolerance, fmi1EventInfo *info) {
    (void)limited; (void)tolerance;
    memset(info, 0, sizeof *info);
    info->iterationConverged = 1;
    ((Instance *)c)->m.mode = STEPPING;
    ((Instance *)c)->in_step = 0;
    return fmi1OK;
}
fmi1Status F(EventUpdate)(fmi1Component c, fmi1Boolean intermediate, fmi1EventInfo *info) {
    Instance *s = c;
    if (intermediate) return say(s, fmi1Error, "intermediate results are not wanted", 0);
    if (s->in_step) return say(s, fmi1Error, "an event in the middle of a step", 0); /* as Amesim has it */
    memset(info, 0, sizeof *info);
    info->stateValuesChanged = event(&s->m);
    info->iterationConverged = 1;
    return fmi1OK;
}
fmi1Status F(CompletedIntegratorStep)(fmi1Component c, fmi1Boolean *update) {
    ((Instance *)c)->in_step = 0;
    *update = 0;
    return fmi1OK;
}
fmi1Status F(SetContinuousStates)(fmi1Component c, const fmi1Real x[], size_t n) {
    for (size_t i = 0; i < n; i++) ((Instance *)c)->m.r[state_vr[i]] = x[i];
    return fmi1OK;
}
fmi1Status F(GetContinuousStates)(fmi1Component c, fmi1Real x[], size_t n) {
    for (size_t i = 0; i < n; i++) x[i] = ((Instance *)c)->m.r[state_vr[i]];
    return fmi1OK;
}
fmi1Status F(GetDerivatives)(fmi1Component c, fmi1Real dx[], size_t n) {
    evaluate(&((Instance *)c)->m);
    for (size_t i = 0; i < n; i++) dx[i] = ((Instance *)c)->m.r[derivative_vr[i]];
    return fmi1OK;
}
fmi1Status F(GetEventIndicators)(fmi1Component c, fmi1Real z[], size_t n) {
    (void)n;
    evaluate(&((Instance *)c)->m);
    indicators(&((Instance *)c)->m, z);
    return fmi1OK;
}
