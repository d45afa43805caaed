/* FMI 3.0 around the zoo's model: co-simulation and model exchange. */
#include "fmi3Functions.h"
#include "zoo.h"

static void tell(Instance *i, int status, const char *category, const char *text) {
    fmi3LogMessageCallback log = (fmi3LogMessageCallback)i->callbacks;
    if (log) log(i->environment, (fmi3Status)status, category, text);
}

const char *fmi3GetVersion(void) { return "3.0"; }
fmi3Status fmi3SetDebugLogging(fmi3Instance c, fmi3Boolean on, size_t n, const fmi3String categories[]) {
    (void)c; (void)on; (void)n; (void)categories;
    return fmi3OK;
}

static fmi3Instance instantiate(fmi3String name, fmi3String token, fmi3String resources, fmi3InstanceEnvironment environment,
                                fmi3LogMessageCallback log) {
    Instance *i = make(name, token, resources, environment, (const void *)log);
    if (i && i->behaviour == RESOURCES) i->s.r[RATE] = read_rate(i, resources);
    if (i && i->behaviour == WORKING_FOLDER) i->s.r[RATE] = read_rate(i, ".");
    return i;
}
fmi3Instance fmi3InstantiateCoSimulation(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
                                         fmi3Boolean logging, fmi3Boolean event_mode, fmi3Boolean early_return,
                                         const fmi3ValueReference required[], size_t n, fmi3InstanceEnvironment environment,
                                         fmi3LogMessageCallback log, fmi3IntermediateUpdateCallback update) {
    (void)visible; (void)logging; (void)event_mode; (void)early_return; (void)required; (void)n; (void)update;
    return instantiate(name, token, resources, environment, log);
}
fmi3Instance fmi3InstantiateModelExchange(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
                                          fmi3Boolean logging, fmi3InstanceEnvironment environment,
                                          fmi3LogMessageCallback log) {
    (void)visible; (void)logging;
    return instantiate(name, token, resources, environment, log);
}
void fmi3FreeInstance(fmi3Instance c) { release(c); }
fmi3Status fmi3EnterInitializationMode(fmi3Instance c, fmi3Boolean tolerance_given, fmi3Float64 tolerance, fmi3Float64 start,
                                       fmi3Boolean stop_given, fmi3Float64 stop) {
    (void)tolerance_given; (void)tolerance;
    Instance *i = c;
    i->stop = stop_given ? stop : -1.0;
    i->s.t = i->s.grid = start;
    i->s.mode = INITIALISING;
    return fmi3OK;
}
fmi3Status fmi3ExitInitializationMode(fmi3Instance c) { evaluate(c); ((Instance *)c)->s.mode = STEPPING; return fmi3OK; }
fmi3Status fmi3EnterEventMode(fmi3Instance c) { (void)c; return fmi3OK; }
fmi3Status fmi3EnterStepMode(fmi3Instance c) { (void)c; return fmi3OK; }
fmi3Status fmi3EnterConfigurationMode(fmi3Instance c) { (void)c; return fmi3OK; }
fmi3Status fmi3ExitConfigurationMode(fmi3Instance c) { (void)c; return fmi3OK; }
fmi3Status fmi3Terminate(fmi3Instance c) { ((Instance *)c)->s.mode = TERMINATED; return fmi3OK; }
fmi3Status fmi3Reset(fmi3Instance c) { return (fmi3Status)reset(c); }

#define LENGTH(VR) ((VR) == FIELD || (VR) == FIELD_OUT ? 3 : 1)
#define GET(NAME)                                                                                                    \
    fmi3Status fmi3Get##NAME(fmi3Instance c, const fmi3ValueReference vr[], size_t n, fmi3##NAME value[], size_t count) { \
        size_t at = 0;                                                                                               \
        evaluate(c);                                                                                                 \
        for (size_t k = 0; k < n; k++)                                                                               \
            for (int j = 0; j < LENGTH(vr[k]); j++, at++) {                                                          \
                if (vr[k] >= SIZE || at >= count) return fmi3Error;                                                  \
                value[at] = (fmi3##NAME)((Instance *)c)->s.r[vr[k] + j];                                             \
                if (vr[k] == 28) value[at] = (fmi3##NAME)9007199254740993LL; /* no double is that */                 \
            }                                                                                                        \
        return at == count ? fmi3OK : fmi3Error;                                                                     \
    }
#define SET(NAME)                                                                                                    \
    fmi3Status fmi3Set##NAME(fmi3Instance c, const fmi3ValueReference vr[], size_t n, const fmi3##NAME value[], size_t count) { \
        size_t at = 0;                                                                                               \
        for (size_t k = 0; k < n; k++)                                                                               \
            for (int j = 0; j < LENGTH(vr[k]); j++, at++) {                                                          \
                if (vr[k] >= SIZE || at >= count) return fmi3Error;                                                  \
                set_number(c, vr[k] + j, value[at]);                                                                 \
            }                                                                                                        \
        return at == count ? fmi3OK : fmi3Error;                                                                     \
    }
#define BOTH(NAME) GET(NAME) SET(NAME)
BOTH(Float64) BOTH(Float32) BOTH(Int8) BOTH(UInt8) BOTH(Int16) BOTH(UInt16) BOTH(Int32) BOTH(UInt32) BOTH(Int64)
BOTH(UInt64) BOTH(Boolean)

fmi3Status fmi3GetString(fmi3Instance c, const fmi3ValueReference vr[], size_t n, fmi3String value[], size_t count) {
    (void)vr; (void)count;
    for (size_t k = 0; k < n; k++) value[k] = ((Instance *)c)->text;
    return fmi3OK;
}
fmi3Status fmi3SetString(fmi3Instance c, const fmi3ValueReference vr[], size_t n, const fmi3String value[], size_t count) {
    (void)vr; (void)count;
    for (size_t k = 0; k < n; k++) snprintf(((Instance *)c)->text, sizeof ((Instance *)c)->text, "%s", value[k]);
    return fmi3OK;
}

/* -- states ------------------------------------------------------------------------------------------------ */

fmi3Status fmi3GetFMUState(fmi3Instance c, fmi3FMUState *state) {
    look_at(c);
    evaluate(c);
    if (!*state) *state = malloc(sizeof(State));
    memcpy(*state, &((Instance *)c)->s, sizeof(State));
    return fmi3OK;
}
fmi3Status fmi3SetFMUState(fmi3Instance c, fmi3FMUState state) { put_back(c, state); return fmi3OK; }
fmi3Status fmi3FreeFMUState(fmi3Instance c, fmi3FMUState *state) {
    (void)c;
    if (!state || !*state) return fmi3OK;
    free(*state);
    *state = NULL;
    return fmi3OK;
}
fmi3Status fmi3SerializedFMUStateSize(fmi3Instance c, fmi3FMUState state, size_t *size) {
    (void)c; (void)state;
    *size = sizeof(State);
    return fmi3OK;
}
fmi3Status fmi3SerializeFMUState(fmi3Instance c, fmi3FMUState state, fmi3Byte bytes[], size_t size) {
    (void)c;
    memcpy(bytes, state, size);
    return fmi3OK;
}
fmi3Status fmi3DeserializeFMUState(fmi3Instance c, const fmi3Byte bytes[], size_t size, fmi3FMUState *state) {
    if (size != sizeof(State)) return fmi3Error;
    if (!*state) *state = malloc(sizeof(State));
    memcpy(*state, bytes, size);
    if (((Instance *)c)->behaviour == SERIAL_LIES) ((State *)*state)->r[STATE] = 0.0;
    return fmi3OK;
}
fmi3Status fmi3GetDirectionalDerivative(fmi3Instance c, const fmi3ValueReference of[], size_t n_of,
                                        const fmi3ValueReference by[], size_t n_by, const fmi3Float64 seed[], size_t n_seed,
                                        fmi3Float64 sensitivity[], size_t n_sensitivity) {
    (void)n_seed; (void)n_sensitivity;
    for (size_t a = 0; a < n_of; a++) {
        sensitivity[a] = 0.0;
        for (size_t b = 0; b < n_by; b++) sensitivity[a] += sensitivity_of(c, of[a], by[b]) * seed[b];
    }
    return fmi3OK;
}

/* -- co-simulation ----------------------------------------------------------------------------------------- */

fmi3Status fmi3DoStep(fmi3Instance c, fmi3Float64 t, fmi3Float64 h, fmi3Boolean no_return, fmi3Boolean *needs_event,
                      fmi3Boolean *terminate, fmi3Boolean *early, fmi3Float64 *last) {
    Instance *i = c;
    int status = step(i, t, h, no_return);
    *needs_event = *early = 0;
    *terminate = i->ended != 0;
    *last = i->reached;
    if (i->ended) { *last = t; return fmi3OK; }
    return (fmi3Status)status;
}
fmi3Status fmi3UpdateDiscreteStates(fmi3Instance c, fmi3Boolean *again, fmi3Boolean *terminate, fmi3Boolean *nominals,
                                    fmi3Boolean *values, fmi3Boolean *next_defined, fmi3Float64 *next) {
    *again = *nominals = *values = *next_defined = 0;
    *terminate = ((Instance *)c)->behaviour == ENDS && ((Instance *)c)->s.t > 0.5;
    *next = 0.0;
    return fmi3OK;
}

/* -- model exchange ---------------------------------------------------------------------------------------- */

fmi3Status fmi3EnterContinuousTimeMode(fmi3Instance c) { (void)c; return fmi3OK; }
fmi3Status fmi3CompletedIntegratorStep(fmi3Instance c, fmi3Boolean final, fmi3Boolean *enter, fmi3Boolean *end) {
    Instance *i = c;
    (void)final;
    *enter = 0;
    *end = i->behaviour == ENDS && i->s.t > 0.5;
    if (i->behaviour == WARNS) { tell(i, WARNING, "logStatusWarning", "the table is extrapolated"); return fmi3Warning; }
    return fmi3OK;
}
fmi3Status fmi3SetTime(fmi3Instance c, fmi3Float64 t) { ((Instance *)c)->s.t = t; return fmi3OK; }
fmi3Status fmi3SetContinuousStates(fmi3Instance c, const fmi3Float64 x[], size_t n) {
    if (n && !((Instance *)c)->s.frozen) ((Instance *)c)->s.r[STATE] = x[0];
    return fmi3OK;
}
fmi3Status fmi3GetContinuousStates(fmi3Instance c, fmi3Float64 x[], size_t n) { if (n) x[0] = ((Instance *)c)->s.r[STATE]; return fmi3OK; }
fmi3Status fmi3GetContinuousStateDerivatives(fmi3Instance c, fmi3Float64 dx[], size_t n) {
    evaluate(c);
    if (n) dx[0] = ((Instance *)c)->s.frozen ? 0.0 : ((Instance *)c)->s.r[SLOPE];
    return fmi3OK;
}
fmi3Status fmi3GetEventIndicators(fmi3Instance c, fmi3Float64 z[], size_t n) { (void)c; (void)z; (void)n; return fmi3OK; }
fmi3Status fmi3GetNominalsOfContinuousStates(fmi3Instance c, fmi3Float64 x[], size_t n) { (void)c; if (n) x[0] = 1.0; return fmi3OK; }
fmi3Status fmi3GetNumberOfEventIndicators(fmi3Instance c, size_t *n) { (void)c; *n = 0; return fmi3OK; }
fmi3Status fmi3GetNumberOfContinuousStates(fmi3Instance c, size_t *n) { (void)c; *n = 1; return fmi3OK; }
