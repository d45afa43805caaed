/* FMI 3.0 wrapper around a model file (see fmu.h): co-simulation with intermediate updates and event mode, and model
 * exchange. Inputs are asked for at six times of a step (where the importer listens), which is enough for degree 5. */
#include "fmi3Functions.h"
#include "fmu.h"

typedef struct {
    Model m;
    fmi3InstanceEnvironment environment;
    fmi3LogMessageCallback log;
    fmi3IntermediateUpdateCallback update;
    int event_mode, early_return;
} Instance;

static fmi3Status say(Instance *s, fmi3Status status, const char *text, double number) {
    char line[256];
    snprintf(line, sizeof line, text, number);
    if (s->log) s->log(s->environment, status, status == fmi3Warning ? "logStatusWarning" : "logStatusError", line);
    return status;
}

const char *fmi3GetVersion(void) { return "3.0"; }
fmi3Status fmi3SetDebugLogging(fmi3Instance c, fmi3Boolean on, size_t n, const fmi3String categories[]) {
    (void)c; (void)on; (void)n; (void)categories;
    return fmi3OK;
}

static int freed; /* a global variable that an instance leaves behind */

static fmi3Instance instantiate(fmi3String token, fmi3InstanceEnvironment environment, fmi3LogMessageCallback log) {
#ifdef ONCE_PER_LOAD
    if (freed) return NULL;
#endif
    Instance *s = calloc(1, sizeof(Instance));
    s->environment = environment;
    s->log = log;
    if (strcmp(token, TOKEN) != 0) {
        say(s, fmi3Error, "the instantiation token is not the one of this library", 0);
        free(s);
        return NULL;
    }
    defaults(&s->m);
    return s;
}

fmi3Instance fmi3InstantiateCoSimulation(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
                                         fmi3Boolean logging, fmi3Boolean event_mode, fmi3Boolean early_return,
                                         const fmi3ValueReference required[], size_t n, fmi3InstanceEnvironment environment,
                                         fmi3LogMessageCallback log, fmi3IntermediateUpdateCallback update) {
    (void)name; (void)resources; (void)visible; (void)logging; (void)required; (void)n;
#ifdef REFUSES_EVENT_MODE
    if (event_mode) return NULL;
#endif
    Instance *s = instantiate(token, environment, log);
    if (s) { s->update = update; s->event_mode = event_mode; s->early_return = early_return; }
    return s;
}
fmi3Instance fmi3InstantiateModelExchange(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
                                          fmi3Boolean logging, fmi3InstanceEnvironment environment,
                                          fmi3LogMessageCallback log) {
    (void)name; (void)resources; (void)visible; (void)logging;
    return instantiate(token, environment, log);
}
fmi3Instance fmi3InstantiateScheduledExecution(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
                                               fmi3Boolean logging, fmi3InstanceEnvironment environment,
                                               fmi3LogMessageCallback log, fmi3ClockUpdateCallback clock,
                                               fmi3LockPreemptionCallback lock, fmi3UnlockPreemptionCallback unlock) {
    (void)name; (void)token; (void)resources; (void)visible; (void)logging; (void)environment; (void)log; (void)clock;
    (void)lock; (void)unlock;
    return NULL;
}

void fmi3FreeInstance(fmi3Instance c) { free(c); freed = 1; }
fmi3Status fmi3EnterInitializationMode(fmi3Instance c, fmi3Boolean tolerance_given, fmi3Float64 tolerance, fmi3Float64 start,
                                       fmi3Boolean stop_given, fmi3Float64 stop) {
    (void)tolerance_given; (void)tolerance; (void)stop_given; (void)stop;
    Instance *s = c;
    s->m.t = start;
    s->m.mode = INITIALISING;
    return fmi3OK;
}
fmi3Status fmi3ExitInitializationMode(fmi3Instance c) {
    Instance *s = c;
    s->m.mode = s->event_mode ? EVENT : STEPPING;
    return fmi3OK;
}
fmi3Status fmi3EnterEventMode(fmi3Instance c) { ((Instance *)c)->m.mode = EVENT; return fmi3OK; }
fmi3Status fmi3EnterStepMode(fmi3Instance c) { ((Instance *)c)->m.mode = STEPPING; return fmi3OK; }
fmi3Status fmi3EnterConfigurationMode(fmi3Instance c) { ((Instance *)c)->m.mode = CONFIGURING; return fmi3OK; }
fmi3Status fmi3ExitConfigurationMode(fmi3Instance c) { ((Instance *)c)->m.mode = INSTANTIATED; return fmi3OK; }
fmi3Status fmi3Terminate(fmi3Instance c) { ((Instance *)c)->m.mode = TERMINATED; return fmi3OK; }
fmi3Status fmi3Reset(fmi3Instance c) {
    memset(&((Instance *)c)->m, 0, sizeof(Model));
    defaults(&((Instance *)c)->m);
    return fmi3OK;
}

/* -- values ------------------------------------------------------------------------------------------------ */

#ifdef N_REFERENCES
#define KNOWN(vr) ((vr) < N_REFERENCES)
#else
#define KNOWN(vr) ((vr) < N_VARIABLES)
#endif
#define OUT_OF_RANGE "value reference %.0f is out of range"

#define GET(NAME, TYPE)                                                                                              \
    fmi3Status fmi3Get##NAME(fmi3Instance c, const fmi3ValueReference vr[], size_t n, TYPE value[], size_t count) {  \
        Instance *s = c;                                                                                             \
        size_t k = 0;                                                                                                \
        if (s->m.mode == INSTANTIATED) return say(s, fmi3Error, "values are read before initialisation", 0);         \
        s->m.r[TIME] = s->m.t;                                                                                       \
        evaluate(&s->m);                                                                                             \
        for (size_t i = 0; i < n; i++) {                                                                             \
            if (!KNOWN(vr[i])) return say(s, fmi3Error, OUT_OF_RANGE, vr[i]);                                        \
            for (int j = 0; j < LENGTH(&s->m, vr[i]) && k < count; j++) value[k++] = (TYPE)s->m.r[OFFSET(&s->m, vr[i]) + j]; \
        }                                                                                                            \
        return k == count ? fmi3OK : say(s, fmi3Error, "%.0f values do not fit", (double)count);                     \
    }
#define SET(NAME, TYPE)                                                                                              \
    fmi3Status fmi3Set##NAME(fmi3Instance c, const fmi3ValueReference vr[], size_t n, const TYPE value[], size_t count) { \
        Instance *s = c;                                                                                             \
        size_t k = 0;                                                                                                \
        for (size_t i = 0; i < n; i++) {                                                                             \
            if (!KNOWN(vr[i])) return say(s, fmi3Error, OUT_OF_RANGE, vr[i]);                                        \
            for (int j = 0; j < LENGTH(&s->m, vr[i]) && k < count; j++) s->m.r[OFFSET(&s->m, vr[i]) + j] = value[k++]; \
        }                                                                                                            \
        return k == count ? fmi3OK : say(s, fmi3Error, "%.0f values do not fit", (double)count);                     \
    }
#define BOTH(NAME) GET(NAME, fmi3##NAME) SET(NAME, fmi3##NAME)
BOTH(Float64) BOTH(Float32) BOTH(Int8) BOTH(UInt8) BOTH(Int16) BOTH(UInt16) BOTH(Int32) BOTH(UInt32) BOTH(Int64)
BOTH(UInt64) BOTH(Boolean)

fmi3Status fmi3GetString(fmi3Instance c, const fmi3ValueReference vr[], size_t n, fmi3String value[], size_t count) {
    (void)count;
    Instance *s = c;
    evaluate(&s->m);
    for (size_t i = 0; i < n; i++) {
        if (vr[i] < 1000 || vr[i] >= 1000 + N_TEXTS) return say(s, fmi3Error, OUT_OF_RANGE, vr[i]);
        value[i] = s->m.text[vr[i] - 1000];
    }
    return fmi3OK;
}
fmi3Status fmi3SetString(fmi3Instance c, const fmi3ValueReference vr[], size_t n, const fmi3String value[], size_t count) {
    (void)count;
    Instance *s = c;
    for (size_t i = 0; i < n; i++) {
        if (vr[i] < 1000 || vr[i] >= 1000 + N_TEXTS) return say(s, fmi3Error, OUT_OF_RANGE, vr[i]);
        snprintf(s->m.text[vr[i] - 1000], TEXT_SIZE, "%s", value[i]);
    }
    return fmi3OK;
}

/* -- states ------------------------------------------------------------------------------------------------ */

#ifdef NO_STATE
#define REFUSE return say(c, fmi3Error, "this FMU cannot save its state", 0);
#else
#define REFUSE
#endif
fmi3Status fmi3GetFMUState(fmi3Instance c, fmi3FMUState *state) {
    REFUSE
    if (!*state) *state = malloc(sizeof(Model));
    memcpy(*state, &((Instance *)c)->m, sizeof(Model));
    return fmi3OK;
}
fmi3Status fmi3SetFMUState(fmi3Instance c, fmi3FMUState state) {
    REFUSE
    memcpy(&((Instance *)c)->m, state, sizeof(Model));
    return fmi3OK;
}
fmi3Status fmi3FreeFMUState(fmi3Instance c, fmi3FMUState *state) {
    (void)c;
    free(*state);
    *state = NULL;
    return fmi3OK;
}
fmi3Status fmi3SerializedFMUStateSize(fmi3Instance c, fmi3FMUState state, size_t *size) {
    (void)c; (void)state;
    *size = sizeof(Model);
    return fmi3OK;
}
fmi3Status fmi3SerializeFMUState(fmi3Instance c, fmi3FMUState state, fmi3Byte bytes[], size_t size) {
    REFUSE
    memcpy(bytes, state, size);
    return fmi3OK;
}
fmi3Status fmi3DeserializeFMUState(fmi3Instance c, const fmi3Byte bytes[], size_t size, fmi3FMUState *state) {
    REFUSE
    if (size != sizeof(Model)) return say(c, fmi3Error, "a serialised state of %.0f bytes is not mine", (double)size);
    if (!*state) *state = malloc(sizeof(Model));
    memcpy(*state, bytes, size);
    return fmi3OK;
}

/* -- derivatives ------------------------------------------------------------------------------------------- */

fmi3Status fmi3GetDirectionalDerivative(fmi3Instance c, const fmi3ValueReference of[], size_t n_of,
                                        const fmi3ValueReference by[], size_t n_by, const fmi3Float64 seed[], size_t n_seed,
                                        fmi3Float64 sensitivity[], size_t n_sensitivity) {
    (void)n_seed; (void)n_sensitivity;
    Model *m = &((Instance *)c)->m;
    size_t row = 0;
    for (size_t i = 0; i < n_of; i++)
        for (int a = 0; a < LENGTH(m, of[i]); a++, row++) {
            size_t column = 0;
            sensitivity[row] = 0.0;
            for (size_t j = 0; j < n_by; j++)
                for (int b = 0; b < LENGTH(m, by[j]); b++, column++)
                    sensitivity[row] += partial(m, OFFSET(m, of[i]) + a, OFFSET(m, by[j]) + b) * seed[column];
        }
    return fmi3OK;
}
fmi3Status fmi3GetAdjointDerivative(fmi3Instance c, const fmi3ValueReference of[], size_t n_of, const fmi3ValueReference by[],
                                    size_t n_by, const fmi3Float64 seed[], size_t n_seed, fmi3Float64 sensitivity[],
                                    size_t n_sensitivity) {
    (void)n_seed; (void)n_sensitivity;
    Model *m = &((Instance *)c)->m;
    size_t column = 0;
    for (size_t j = 0; j < n_by; j++)
        for (int b = 0; b < LENGTH(m, by[j]); b++, column++) {
            size_t row = 0;
            sensitivity[column] = 0.0;
            for (size_t i = 0; i < n_of; i++)
                for (int a = 0; a < LENGTH(m, of[i]); a++, row++)
                    sensitivity[column] += seed[row] * partial(m, OFFSET(m, of[i]) + a, OFFSET(m, by[j]) + b);
        }
    return fmi3OK;
}
fmi3Status fmi3GetOutputDerivatives(fmi3Instance c, const fmi3ValueReference vr[], size_t n, const fmi3Int32 order[],
                                    fmi3Float64 value[], size_t count) {
    (void)count;
    Instance *s = c;
    evaluate(&s->m);
    for (size_t i = 0; i < n; i++) {
        value[i] = 0.0;
        for (int k = 0; k < N_STATES; k++)
            if (order[i] == 1) value[i] += partial(&s->m, vr[i], state_vr[k]) * s->m.r[derivative_vr[k]];
    }
    return fmi3OK;
}

/* -- co-simulation ----------------------------------------------------------------------------------------- */

/* The coefficients of the inputs over [t, t + h], from the importer's values at ORDERS equidistant times. */
static void sample(Instance *s, double t, double h, double u[][ORDERS]) {
    Model *m = &s->m;
    double end[N_INPUTS + 1];
    memset(u, 0, sizeof(double[N_INPUTS + 1][ORDERS]));
#ifdef LISTENS
    if (s->update) {
        double value[N_INPUTS + 1][ORDERS];
        for (int k = 0; k < ORDERS; k++) {
            fmi3Boolean ask = 0;
            fmi3Float64 when = 0.0;
            m->t = k == ORDERS - 1 ? t + h : t + h * k / (ORDERS - 1);
            s->update(s->environment, m->t, 1, 0, k == ORDERS - 1, 0, &ask, &when);
            for (int i = 0; i < N_INPUTS; i++) value[i][k] = m->r[input_vr[i]];
        }
        m->t = t;
        for (int i = 0; i < N_INPUTS; i++) { /* Newton's divided differences in k, then powers of k, then of tau */
            double *d = value[i], c[ORDERS] = {0};
            for (int j = 1; j < ORDERS; j++)
                for (int k = ORDERS - 1; k >= j; k--) d[k] = (d[k] - d[k - 1]) / j;
            for (int k = ORDERS - 1; k >= 0; k--) {
                for (int j = ORDERS - 1; j > 0; j--) c[j] = c[j - 1] - k * c[j];
                c[0] = d[k] - k * c[0];
            }
            for (int j = 0; j < ORDERS; j++) u[i][j] = c[j] * pow((ORDERS - 1) / h, j);
        }
        return;
    }
#endif
    (void)end; (void)t; (void)h;
    for (int i = 0; i < N_INPUTS; i++) u[i][0] = m->r[input_vr[i]];
}

fmi3Status fmi3DoStep(fmi3Instance c, fmi3Float64 t, fmi3Float64 h, fmi3Boolean final, fmi3Boolean *needs_event,
                      fmi3Boolean *terminate, fmi3Boolean *early, fmi3Float64 *last) {
    (void)final;
    Instance *s = c;
    Model *m = &s->m;
    double u[N_INPUTS + 1][ORDERS], done = 0.0;
    *needs_event = *terminate = *early = 0;
    *last = t;
    if (m->mode != STEPPING) return say(s, fmi3Error, "doStep is called outside step mode", 0);
    if (fabs(t - m->t) > 1e-9 * (1.0 + fabs(t)))
        return say(s, fmi3Error, "doStep starts at another time than %.9g, where the last step ended", m->t);
    int ends = 0;
    switch (failure(m, t + h)) {
        case ENDS:
            say(s, fmi3OK, "the tank is empty at t = %g", fail_at(m));
            ends = 1;
            h = fmax(0.0, fail_at(m) - t);
            break;
        case TOO_LONG: /* steps longer than 3 ms */
            if (h > 3e-3) return say(s, fmi3Discard, "the step from t = %g is too long", t);
            break;
        case DISCARD: *last = t + 0.25 * h; return say(s, fmi3Discard, "the solver did not converge after t = %g", t);
        case ERROR: return say(s, fmi3Error, "the tank is empty at t = %g", t);
        case FATAL: return say(s, fmi3Fatal, "out of memory at t = %g", t);
        case WARNING: say(s, fmi3Warning, "the table is extrapolated at t = %g", t); break;
        case NOT_A_NUMBER: m->r[state_vr[0]] = NAN; break;
    }
    sample(s, t, h, u);
    while (done < h) {
        double moved = cross(m, u, h - done);
        for (int i = 0; i < N_INPUTS; i++) shift(u[i], moved);
        done = moved == h - done ? h : done + moved;
        if (m->event_pending) {
            m->event_pending = 0;
            if (s->event_mode && s->early_return) {
                *needs_event = 1;
                *early = done < h;
                break;
            }
            event(m);
        }
    }
    for (int i = 0; i < N_INPUTS; i++) m->r[input_vr[i]] = u[i][0];
    m->t = *last = t + done;
    if (ends) *terminate = *early = 1;
    return fmi3OK;
}

fmi3Status fmi3UpdateDiscreteStates(fmi3Instance c, fmi3Boolean *again, fmi3Boolean *terminate, fmi3Boolean *nominals,
                                    fmi3Boolean *values, fmi3Boolean *next_defined, fmi3Float64 *next) {
    *again = *terminate = *nominals = *next_defined = 0;
    *next = 0.0;
    *values = event(&((Instance *)c)->m);
#ifdef ITERATES
    *again = *values; /* nothing changes in the next iteration */
#endif
    return fmi3OK;
}

/* -- model exchange ---------------------------------------------------------------------------------------- */

fmi3Status fmi3EnterContinuousTimeMode(fmi3Instance c) { ((Instance *)c)->m.mode = CONTINUOUS; return fmi3OK; }
fmi3Status fmi3CompletedIntegratorStep(fmi3Instance c, fmi3Boolean final, fmi3Boolean *enter, fmi3Boolean *end) {
    (void)final;
    *enter = 0;
    *end = failure(&((Instance *)c)->m, ((Instance *)c)->m.t) == ENDS;
    return fmi3OK;
}
fmi3Status fmi3SetTime(fmi3Instance c, fmi3Float64 t) { ((Instance *)c)->m.t = t; return fmi3OK; }
fmi3Status fmi3SetContinuousStates(fmi3Instance c, const fmi3Float64 x[], size_t n) {
    for (size_t i = 0; i < n; i++) ((Instance *)c)->m.r[state_vr[i]] = x[i];
    return fmi3OK;
}
fmi3Status fmi3GetContinuousStates(fmi3Instance c, fmi3Float64 x[], size_t n) {
    for (size_t i = 0; i < n; i++) x[i] = ((Instance *)c)->m.r[state_vr[i]];
    return fmi3OK;
}
fmi3Status fmi3GetContinuousStateDerivatives(fmi3Instance c, fmi3Float64 dx[], size_t n) {
    evaluate(&((Instance *)c)->m);
    for (size_t i = 0; i < n; i++) dx[i] = ((Instance *)c)->m.r[derivative_vr[i]];
    return fmi3OK;
}
fmi3Status fmi3GetEventIndicators(fmi3Instance c, fmi3Float64 z[], size_t n) {
    (void)n;
    evaluate(&((Instance *)c)->m);
    indicators(&((Instance *)c)->m, z);
    return fmi3OK;
}
fmi3Status fmi3GetNominalsOfContinuousStates(fmi3Instance c, fmi3Float64 x[], size_t n) {
    (void)c;
    for (size_t i = 0; i < n; i++) x[i] = 1.0;
    return fmi3OK;
}
fmi3Status fmi3GetNumberOfEventIndicators(fmi3Instance c, size_t *n) { (void)c; *n = N_INDICATORS; return fmi3OK; }
fmi3Status fmi3GetNumberOfContinuousStates(fmi3Instance c, size_t *n) { (void)c; *n = N_STATES; return fmi3OK; }
