/* FMI 2.0 wrapper around a model file (see fmu.h): co-simulation and model exchange. */
#include "fmi2Functions.h"
#include "fmu.h"

typedef struct {
    Model m;
    double last_time;
    int wants_end;
    const fmi2CallbackFunctions *callbacks;
    char name[64];
} Instance;

static fmi2Status say(Instance *s, fmi2Status status, const char *text, double number) {
    if (s->callbacks && s->callbacks->logger)
        s->callbacks->logger(s->callbacks->componentEnvironment, s->name, status,
                             status == fmi2Warning ? "logStatusWarning" : "logStatusError", text, number);
    return status;
}

const char *fmi2GetTypesPlatform(void) { return fmi2TypesPlatform; }
const char *fmi2GetVersion(void) { return "2.0"; }
fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t n, const fmi2String categories[]) {
    (void)c; (void)on; (void)n; (void)categories;
    return fmi2OK;
}

static int freed; /* a global variable that an instance leaves behind */

fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                              const fmi2CallbackFunctions *callbacks, fmi2Boolean visible, fmi2Boolean logging) {
    (void)type; (void)resources; (void)visible; (void)logging;
#ifdef ONCE_PER_LOAD
    if (freed) return NULL;
#endif
    Instance *s = calloc(1, sizeof(Instance));
    snprintf(s->name, sizeof s->name, "%s", name);
    s->callbacks = callbacks;
    if (strcmp(guid, TOKEN) != 0) {
        say(s, fmi2Error, "the GUID is not the one of this library", 0);
        free(s);
        return NULL;
    }
    defaults(&s->m);
    return s;
}

void fmi2FreeInstance(fmi2Component c) { free(c); freed = 1; }

fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean tolerance_given, fmi2Real tolerance, fmi2Real start,
                               fmi2Boolean stop_given, fmi2Real stop) {
    (void)tolerance_given; (void)tolerance; (void)stop_given; (void)stop;
    ((Instance *)c)->m.t = start;
    return fmi2OK;
}
fmi2Status fmi2EnterInitializationMode(fmi2Component c) { ((Instance *)c)->m.mode = INITIALISING; return fmi2OK; }
fmi2Status fmi2ExitInitializationMode(fmi2Component c) { ((Instance *)c)->m.mode = STEPPING; return fmi2OK; }
fmi2Status fmi2Terminate(fmi2Component c) { ((Instance *)c)->m.mode = TERMINATED; return fmi2OK; }
fmi2Status fmi2Reset(fmi2Component c) {
    memset(&((Instance *)c)->m, 0, sizeof(Model));
    defaults(&((Instance *)c)->m);
    return fmi2OK;
}

static double *at(Instance *s, fmi2ValueReference vr) {
    if (vr < N_VARIABLES) return s->m.r + vr;
    say(s, fmi2Error, "value reference %.0f is out of range", vr);
    return NULL;
}

#define GET(NAME, TYPE)                                                                                              \
    fmi2Status fmi2Get##NAME(fmi2Component c, const fmi2ValueReference vr[], size_t n, TYPE value[]) {               \
        Instance *s = c;                                                                                             \
        if (s->m.mode == INSTANTIATED) return say(s, fmi2Error, "values are read before initialisation", 0);         \
        s->m.r[TIME] = s->m.t;                                                                                       \
        evaluate(&s->m);                                                                                             \
        for (size_t i = 0; i < n; i++) {                                                                             \
            double *number = at(s, vr[i]);                                                                           \
            if (!number) return fmi2Error;                                                                           \
            value[i] = (TYPE)*number;                                                                                \
        }                                                                                                            \
        return fmi2OK;                                                                                               \
    }
#define SET(NAME, TYPE)                                                                                              \
    fmi2Status fmi2Set##NAME(fmi2Component c, const fmi2ValueReference vr[], size_t n, const TYPE value[]) {         \
        for (size_t i = 0; i < n; i++) {                                                                             \
            double *number = at(c, vr[i]);                                                                           \
            if (!number) return fmi2Error;                                                                           \
            *number = value[i];                                                                                      \
            memset(((Instance *)c)->m.du, 0, sizeof ((Instance *)c)->m.du);                                          \
        }                                                                                                            \
        return fmi2OK;                                                                                               \
    }
GET(Real, fmi2Real) GET(Integer, fmi2Integer) GET(Boolean, fmi2Boolean)
SET(Real, fmi2Real) SET(Integer, fmi2Integer) SET(Boolean, fmi2Boolean)

fmi2Status fmi2GetString(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2String value[]) {
    Instance *s = c;
    evaluate(&s->m);
    for (size_t i = 0; i < n; i++) {
        if (vr[i] < 1000 || vr[i] >= 1000 + N_TEXTS) return say(s, fmi2Error, "value reference %.0f is out of range", vr[i]);
        value[i] = s->m.text[vr[i] - 1000];
    }
    return fmi2OK;
}
fmi2Status fmi2SetString(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2String value[]) {
    Instance *s = c;
    for (size_t i = 0; i < n; i++) {
        if (vr[i] < 1000 || vr[i] >= 1000 + N_TEXTS) return say(s, fmi2Error, "value reference %.0f is out of range", vr[i]);
        snprintf(s->m.text[vr[i] - 1000], TEXT_SIZE, "%s", value[i]);
    }
    return fmi2OK;
}

/* -- states ------------------------------------------------------------------------------------------------ */

#ifdef NO_STATE
#define REFUSE return say(c, fmi2Error, "this FMU cannot save its state", 0);
#else
#define REFUSE
#endif
fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *state) {
    REFUSE
    if (!*state) *state = malloc(sizeof(Model));
    memcpy(*state, &((Instance *)c)->m, sizeof(Model));
    return fmi2OK;
}
fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate state) {
    REFUSE
    memcpy(&((Instance *)c)->m, state, sizeof(Model));
    return fmi2OK;
}
fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *state) {
    (void)c;
    free(*state);
    *state = NULL;
    return fmi2OK;
}
fmi2Status fmi2SerializedFMUstateSize(fmi2Component c, fmi2FMUstate state, size_t *size) {
    (void)c; (void)state;
    *size = sizeof(Model);
    return fmi2OK;
}
fmi2Status fmi2SerializeFMUstate(fmi2Component c, fmi2FMUstate state, fmi2Byte bytes[], size_t size) {
    REFUSE
    memcpy(bytes, state, size);
    return fmi2OK;
}
fmi2Status fmi2DeSerializeFMUstate(fmi2Component c, const fmi2Byte bytes[], size_t size, fmi2FMUstate *state) {
    REFUSE
    if (size != sizeof(Model)) return say(c, fmi2Error, "a serialised state of %.0f bytes is not mine", (double)size);
    if (!*state) *state = malloc(sizeof(Model));
    memcpy(*state, bytes, size);
    return fmi2OK;
}

fmi2Status fmi2GetDirectionalDerivative(fmi2Component c, const fmi2ValueReference of[], size_t n_of,
                                        const fmi2ValueReference by[], size_t n_by, const fmi2Real seed[],
                                        fmi2Real sensitivity[]) {
    Instance *s = c;
    for (size_t i = 0; i < n_of; i++) {
        sensitivity[i] = 0.0;
        for (size_t j = 0; j < n_by; j++) sensitivity[i] += partial(&s->m, of[i], by[j]) * seed[j];
    }
    return fmi2OK;
}

/* -- co-simulation ----------------------------------------------------------------------------------------- */

fmi2Status fmi2SetRealInputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Integer order[],
                                       const fmi2Real value[]) {
    for (size_t i = 0; i < n; i++) {
        if (vr[i] >= N_VARIABLES || order[i] < 1 || order[i] >= ORDERS)
            return say(c, fmi2Error, "input derivatives go to order 5, not %.0f", order[i]);
        ((Instance *)c)->m.du[order[i]][vr[i]] = value[i];
    }
    return fmi2OK;
}

fmi2Status fmi2GetRealOutputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Integer order[],
                                        fmi2Real value[]) {
    Instance *s = c;
    evaluate(&s->m);
    for (size_t i = 0; i < n; i++) {
        value[i] = 0.0;
        for (int k = 0; k < N_STATES; k++)
            if (order[i] == 1) value[i] += partial(&s->m, vr[i], state_vr[k]) * s->m.r[derivative_vr[k]];
    }
    return fmi2OK;
}

fmi2Status fmi2DoStep(fmi2Component c, fmi2Real t, fmi2Real h, fmi2Boolean final) {
    (void)final;
    Instance *s = c;
    Model *m = &s->m;
    double u[N_INPUTS + 1][ORDERS];
    if (m->mode != STEPPING) return say(s, fmi2Error, "doStep is called before the initialisation ends", 0);
    if (fabs(t - m->t) > 1e-9 * (1.0 + fabs(t)))
        return say(s, fmi2Error, "doStep starts at another time than %.9g, where the last step ended", m->t);
    switch (failure(m, t + h)) {
        case DISCARD: s->last_time = t + 0.25 * h; return say(s, fmi2Discard, "the solver did not converge after t = %g", t);
        case ERROR: return say(s, fmi2Error, "the tank is empty at t = %g", t);
        case FATAL: return say(s, fmi2Fatal, "out of memory at t = %g", t);
        case WARNING: say(s, fmi2Warning, "the table is extrapolated at t = %g", t); break;
        case NOT_A_NUMBER: m->r[state_vr[0]] = NAN; break;
        case ENDS:
            s->last_time = fail_at(m);
            s->wants_end = 1;
            return say(s, fmi2Discard, "the tank is empty at t = %g", s->last_time);
        case TOO_LONG: /* steps longer than 3 ms */
            s->last_time = t;
            if (h > 3e-3) return say(s, fmi2Discard, "the step from t = %g is too long", t);
            break;
        case STOPS: /* a step must not cross FAIL_AT, but may end there */
            s->last_time = fail_at(m);
            if (t < s->last_time * (1.0 - 1e-9)) return say(s, fmi2Discard, "a switch at t = %g", s->last_time);
            break;
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
    return fmi2OK;
}

fmi2Status fmi2CancelStep(fmi2Component c) { (void)c; return fmi2Error; }
fmi2Status fmi2GetStatus(fmi2Component c, const fmi2StatusKind k, fmi2Status *v) { (void)c; (void)k; (void)v; return fmi2Discard; }
fmi2Status fmi2GetRealStatus(fmi2Component c, const fmi2StatusKind k, fmi2Real *v) {
    if (k != fmi2LastSuccessfulTime) return fmi2Discard;
    *v = ((Instance *)c)->last_time;
    return fmi2OK;
}
fmi2Status fmi2GetIntegerStatus(fmi2Component c, const fmi2StatusKind k, fmi2Integer *v) { (void)c; (void)k; (void)v; return fmi2Discard; }
fmi2Status fmi2GetBooleanStatus(fmi2Component c, const fmi2StatusKind k, fmi2Boolean *v) { (void)k; *v = ((Instance *)c)->wants_end; return fmi2OK; }
fmi2Status fmi2GetStringStatus(fmi2Component c, const fmi2StatusKind k, fmi2String *v) { (void)c; (void)k; (void)v; return fmi2Discard; }

/* -- model exchange ---------------------------------------------------------------------------------------- */

fmi2Status fmi2EnterEventMode(fmi2Component c) { ((Instance *)c)->m.mode = EVENT; return fmi2OK; }
fmi2Status fmi2NewDiscreteStates(fmi2Component c, fmi2EventInfo *info) {
    memset(info, 0, sizeof *info);
    info->valuesOfContinuousStatesChanged = event(&((Instance *)c)->m);
#ifdef ITERATES
    info->newDiscreteStatesNeeded = info->valuesOfContinuousStatesChanged; /* nothing changes in the next iteration */
#endif
    return fmi2OK;
}
fmi2Status fmi2EnterContinuousTimeMode(fmi2Component c) { ((Instance *)c)->m.mode = CONTINUOUS; return fmi2OK; }
fmi2Status fmi2CompletedIntegratorStep(fmi2Component c, fmi2Boolean final, fmi2Boolean *enter, fmi2Boolean *end) {
    (void)final;
    *enter = fmi2False;
    *end = failure(&((Instance *)c)->m, ((Instance *)c)->m.t) == ENDS;
    return fmi2OK;
}
fmi2Status fmi2SetTime(fmi2Component c, fmi2Real t) { ((Instance *)c)->m.t = t; return fmi2OK; }
fmi2Status fmi2SetContinuousStates(fmi2Component c, const fmi2Real x[], size_t n) {
    for (size_t i = 0; i < n; i++) ((Instance *)c)->m.r[state_vr[i]] = x[i];
    return fmi2OK;
}
fmi2Status fmi2GetContinuousStates(fmi2Component c, fmi2Real x[], size_t n) {
    for (size_t i = 0; i < n; i++) x[i] = ((Instance *)c)->m.r[state_vr[i]];
    return fmi2OK;
}
fmi2Status fmi2GetDerivatives(fmi2Component c, fmi2Real dx[], size_t n) {
    evaluate(&((Instance *)c)->m);
    for (size_t i = 0; i < n; i++) dx[i] = ((Instance *)c)->m.r[derivative_vr[i]];
    return fmi2OK;
}
fmi2Status fmi2GetEventIndicators(fmi2Component c, fmi2Real z[], size_t n) {
    (void)n;
    evaluate(&((Instance *)c)->m);
    indicators(&((Instance *)c)->m, z);
    return fmi2OK;
}
fmi2Status fmi2GetNominalsOfContinuousStates(fmi2Component c, fmi2Real x[], size_t n) {
    (void)c;
    for (size_t i = 0; i < n; i++) x[i] = 1.0;
    return fmi2OK;
}
