/* Time and step events for model-exchange models; included at the end of a model file.
 *
 * The wrappers fmi2.c and fmi3.c know state events only. Here their functions get other names, and those of the standard
 * call them and add what the model says: next_event(m) with HAS_TIME_EVENTS, step_event(m) with HAS_STEP_EVENTS. An
 * instance begins with its Model in both wrappers. */
#ifdef fmi2Functions_h
fmi2Status plain2NewDiscreteStates(fmi2Component c, fmi2EventInfo *info);
fmi2Status plain2CompletedIntegratorStep(fmi2Component c, fmi2Boolean final, fmi2Boolean *enter, fmi2Boolean *end);
#ifdef HAS_TIME_EVENTS
fmi2Status fmi2NewDiscreteStates(fmi2Component c, fmi2EventInfo *info) {
    fmi2Status status = plain2NewDiscreteStates(c, info);
    info->nextEventTimeDefined = fmi2True;
    info->nextEventTime = next_event((Model *)c);
    return status;
}
#undef fmi2NewDiscreteStates
#define fmi2NewDiscreteStates plain2NewDiscreteStates
#endif
#ifdef HAS_STEP_EVENTS
fmi2Status fmi2CompletedIntegratorStep(fmi2Component c, fmi2Boolean final, fmi2Boolean *enter, fmi2Boolean *end) {
    fmi2Status status = plain2CompletedIntegratorStep(c, final, enter, end);
    *enter = step_event((Model *)c);
    return status;
}
#undef fmi2CompletedIntegratorStep
#define fmi2CompletedIntegratorStep plain2CompletedIntegratorStep
#endif
#endif

#ifdef fmi3Functions_h
fmi3Status plain3UpdateDiscreteStates(fmi3Instance c, fmi3Boolean *again, fmi3Boolean *terminate, fmi3Boolean *nominals,
                                      fmi3Boolean *values, fmi3Boolean *next_defined, fmi3Float64 *next);
fmi3Status plain3CompletedIntegratorStep(fmi3Instance c, fmi3Boolean final, fmi3Boolean *enter, fmi3Boolean *end);
#ifdef HAS_TIME_EVENTS
fmi3Status fmi3UpdateDiscreteStates(fmi3Instance c, fmi3Boolean *again, fmi3Boolean *terminate, fmi3Boolean *nominals,
                                    fmi3Boolean *values, fmi3Boolean *next_defined, fmi3Float64 *next) {
    fmi3Status status = plain3UpdateDiscreteStates(c, again, terminate, nominals, values, next_defined, next);
    *next_defined = 1;
    *next = next_event((Model *)c);
    return status;
}
#undef fmi3UpdateDiscreteStates
#define fmi3UpdateDiscreteStates plain3UpdateDiscreteStates
#endif
#ifdef HAS_STEP_EVENTS
fmi3Status fmi3CompletedIntegratorStep(fmi3Instance c, fmi3Boolean final, fmi3Boolean *enter, fmi3Boolean *end) {
    fmi3Status status = plain3CompletedIntegratorStep(c, final, enter, end);
    *enter = step_event((Model *)c);
    return status;
}
#undef fmi3CompletedIntegratorStep
#define fmi3CompletedIntegratorStep plain3CompletedIntegratorStep
#endif
#endif
