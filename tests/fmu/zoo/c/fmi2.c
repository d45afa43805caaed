/* FMI 2.0 around the zoo's model: co-simulation and model exchange. */
#include "fmi2Functions.h"
#include "zoo.h"

static void tell(Instance *i, int status, const char *category, const char *text) {
    const fmi2CallbackFunctions *callbacks = i->callbacks;
    if (!callbacks || !callbacks->logger) return;
    if (status == OK) callbacks->logger(i->environment, i->name, fmi2OK, category, "load at 80 % of full"); /* no argument */
    callbacks->logger(i->environment, i->name, (fmi2Status)status, category, "%s", text);
}

const char *fmi2GetTypesPlatform(void) { return fmi2TypesPlatform; }
const char *fmi2GetVersion(void) { return "2.0"; }
fmi2Status fmi2SetDebugLogging(fmi2Component c, fmi2Boolean on, size_t n, const fmi2String categories[]) {
    (void)c; (void)on; (void)n; (void)categories;
    return fmi2OK;
}

fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                              const fmi2CallbackFunctions *callbacks, fmi2Boolean visible, fmi2Boolean logging) {
    (void)type; (void)visible; (void)logging;
    Instance *i = make(name, guid, resources, callbacks->componentEnvironment, callbacks);
    if (i && i->behaviour == RESOURCES) i->s.r[RATE] = read_rate(i, resources);
    if (i && i->behaviour == WORKING_FOLDER) i->s.r[RATE] = read_rate(i, ".");
    return i;
}
void fmi2FreeInstance(fmi2Component c) { release(c); }
fmi2Status fmi2SetupExperiment(fmi2Component c, fmi2Boolean tolerance_given, fmi2Real tolerance, fmi2Real start,
                               fmi2Boolean stop_given, fmi2Real stop) {
    (void)tolerance_given; (void)tolerance;
    Instance *i = c;
    i->stop = stop_given ? stop : -1.0;
    if (i->behaviour == FORGETS_EARLY) defaults(i);
    i->s.t = i->s.grid = start;
    return fmi2OK;
}
fmi2Status fmi2EnterInitializationMode(fmi2Component c) { ((Instance *)c)->s.mode = INITIALISING; return fmi2OK; }
fmi2Status fmi2ExitInitializationMode(fmi2Component c) { evaluate(c); ((Instance *)c)->s.mode = STEPPING; return fmi2OK; }
fmi2Status fmi2Terminate(fmi2Component c) { ((Instance *)c)->s.mode = TERMINATED; return fmi2OK; }
fmi2Status fmi2Reset(fmi2Component c) { return (fmi2Status)reset(c); }

#define GET(NAME, TYPE)                                                                                              \
    fmi2Status fmi2Get##NAME(fmi2Component c, const fmi2ValueReference vr[], size_t n, TYPE value[]) {               \
        evaluate(c);                                                                                                 \
        for (size_t k = 0; k < n; k++) {                                                                             \
            if (vr[k] >= SIZE) return fmi2Error;                                                                     \
            value[k] = (TYPE)((Instance *)c)->s.r[vr[k]];                                                            \
        }                                                                                                            \
        return fmi2OK;                                                                                               \
    }
#define SET(NAME, TYPE)                                                                                              \
    fmi2Status fmi2Set##NAME(fmi2Component c, const fmi2ValueReference vr[], size_t n, const TYPE value[]) {         \
        for (size_t k = 0; k < n; k++) {                                                                             \
            if (vr[k] >= SIZE) return fmi2Error;                                                                     \
            set_number(c, vr[k], value[k]);                                                                          \
        }                                                                                                            \
        return fmi2OK;                                                                                               \
    }
GET(Real, fmi2Real) GET(Integer, fmi2Integer) GET(Boolean, fmi2Boolean)
SET(Real, fmi2Real) SET(Integer, fmi2Integer) SET(Boolean, fmi2Boolean)

fmi2Status fmi2GetString(fmi2Component c, const fmi2ValueReference vr[], size_t n, fmi2String value[]) {
    (void)vr;
    for (size_t k = 0; k < n; k++) value[k] = ((Instance *)c)->text;
    return fmi2OK;
}
fmi2Status fmi2SetString(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2String value[]) {
    (void)vr;
    for (size_t k = 0; k < n; k++) snprintf(((Instance *)c)->text, sizeof ((Instance *)c)->text, "%s", value[k]);
    return fmi2OK;
}

/* -- states ------------------------------------------------------------------------------------------------ */

fmi2Status fmi2GetFMUstate(fmi2Component c, fmi2FMUstate *state) {
    look_at(c);
    evaluate(c);
    if (!*state) *state = malloc(sizeof(State));
    memcpy(*state, &((Instance *)c)->s, sizeof(State));
    return fmi2OK;
}
fmi2Status fmi2SetFMUstate(fmi2Component c, fmi2FMUstate state) { put_back(c, state); return fmi2OK; }
fmi2Status fmi2FreeFMUstate(fmi2Component c, fmi2FMUstate *state) {
    (void)c;
    if (!state || !*state) return fmi2OK;
    free(*state);
    *state = NULL;
    return fmi2OK;
}
fmi2Status fmi2SerializedFMUstateSize(fmi2Component c, fmi2FMUstate state, size_t *size) {
    (void)c; (void)state;
    *size = sizeof(State);
    return fmi2OK;
}
fmi2Status fmi2SerializeFMUstate(fmi2Component c, fmi2FMUstate state, fmi2Byte bytes[], size_t size) {
    (void)c;
    memcpy(bytes, state, size);
    return fmi2OK;
}
fmi2Status fmi2DeSerializeFMUstate(fmi2Component c, const fmi2Byte bytes[], size_t size, fmi2FMUstate *state) {
    if (size != sizeof(State)) return fmi2Error;
    if (!*state) *state = malloc(sizeof(State));
    memcpy(*state, bytes, size);
    if (((Instance *)c)->behaviour == SERIAL_LIES) ((State *)*state)->r[STATE] = 0.0;
    return fmi2OK;
}
fmi2Status fmi2GetDirectionalDerivative(fmi2Component c, const fmi2ValueReference of[], size_t n_of,
                                        const fmi2ValueReference by[], size_t n_by, const fmi2Real seed[],
                                        fmi2Real sensitivity[]) {
    for (size_t a = 0; a < n_of; a++) {
        sensitivity[a] = 0.0;
        for (size_t b = 0; b < n_by; b++) sensitivity[a] += sensitivity_of(c, of[a], by[b]) * seed[b];
    }
    return fmi2OK;
}

/* -- co-simulation ----------------------------------------------------------------------------------------- */

fmi2Status fmi2DoStep(fmi2Component c, fmi2Real t, fmi2Real h, fmi2Boolean no_return) {
    return (fmi2Status)step(c, t, h, no_return);
}
fmi2Status fmi2CancelStep(fmi2Component c) { (void)c; return fmi2Error; }
fmi2Status fmi2GetStatus(fmi2Component c, const fmi2StatusKind k, fmi2Status *v) { (void)c; (void)k; (void)v; return fmi2Discard; }
fmi2Status fmi2GetRealStatus(fmi2Component c, const fmi2StatusKind k, fmi2Real *v) {
    if (k != fmi2LastSuccessfulTime) return fmi2Discard;
    *v = ((Instance *)c)->reached;
    return fmi2OK;
}
fmi2Status fmi2GetIntegerStatus(fmi2Component c, const fmi2StatusKind k, fmi2Integer *v) { (void)c; (void)k; (void)v; return fmi2Discard; }
fmi2Status fmi2GetBooleanStatus(fmi2Component c, const fmi2StatusKind k, fmi2Boolean *v) {
    if (k != fmi2Terminated) return fmi2Discard;
    *v = ((Instance *)c)->ended;
    return fmi2OK;
}
fmi2Status fmi2GetStringStatus(fmi2Component c, const fmi2StatusKind k, fmi2String *v) { (void)c; (void)k; (void)v; return fmi2Discard; }
fmi2Status fmi2SetRealInputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Integer order[],
                                       const fmi2Real value[]) {
    (void)vr; (void)n; (void)order; (void)value;
    return ((Instance *)c)->behaviour == DEAF ? fmi2OK : fmi2Error; /* taken and not used */
}
fmi2Status fmi2GetRealOutputDerivatives(fmi2Component c, const fmi2ValueReference vr[], size_t n, const fmi2Integer order[],
                                        fmi2Real value[]) { (void)c; (void)vr; (void)n; (void)order; (void)value; return fmi2Error; }

/* -- model exchange ---------------------------------------------------------------------------------------- */

fmi2Status fmi2EnterEventMode(fmi2Component c) { (void)c; return fmi2OK; }
fmi2Status fmi2NewDiscreteStates(fmi2Component c, fmi2EventInfo *info) {
    memset(info, 0, sizeof *info);
    if (((Instance *)c)->behaviour == ENDS && ((Instance *)c)->s.t > 0.5) info->terminateSimulation = fmi2True;
    return fmi2OK;
}
fmi2Status fmi2EnterContinuousTimeMode(fmi2Component c) { (void)c; return fmi2OK; }
fmi2Status fmi2CompletedIntegratorStep(fmi2Component c, fmi2Boolean final, fmi2Boolean *enter, fmi2Boolean *end) {
    Instance *i = c;
    (void)final;
    *enter = fmi2False;
    *end = i->behaviour == ENDS && i->s.t > 0.5;
    if (i->behaviour == WARNS) { tell(i, WARNING, "logStatusWarning", "the table is extrapolated"); return fmi2Warning; }
    return fmi2OK;
}
fmi2Status fmi2SetTime(fmi2Component c, fmi2Real t) { ((Instance *)c)->s.t = t; return fmi2OK; }
fmi2Status fmi2SetContinuousStates(fmi2Component c, const fmi2Real x[], size_t n) {
    if (n && !((Instance *)c)->s.frozen) ((Instance *)c)->s.r[STATE] = x[0];
    return fmi2OK;
}
fmi2Status fmi2GetContinuousStates(fmi2Component c, fmi2Real x[], size_t n) { if (n) x[0] = ((Instance *)c)->s.r[STATE]; return fmi2OK; }
fmi2Status fmi2GetDerivatives(fmi2Component c, fmi2Real dx[], size_t n) {
    evaluate(c);
    if (n) dx[0] = ((Instance *)c)->s.frozen ? 0.0 : ((Instance *)c)->s.r[SLOPE];
    return fmi2OK;
}
fmi2Status fmi2GetEventIndicators(fmi2Component c, fmi2Real z[], size_t n) { (void)c; (void)z; (void)n; return fmi2OK; }
fmi2Status fmi2GetNominalsOfContinuousStates(fmi2Component c, fmi2Real x[], size_t n) { (void)c; if (n) x[0] = 1.0; return fmi2OK; }
