/* Functions of FMI 3.0 that the zoo has no use for; FMPy asks for all of them when it loads a library. Their arguments do
 * not matter, so this file does without the FMI headers. */
#define UNUSED(NAME) int fmi3##NAME(void) { return 3; } /* fmi3Error */
UNUSED(ActivateModelPartition) UNUSED(EvaluateDiscreteStates) UNUSED(GetAdjointDerivative) UNUSED(GetBinary)
UNUSED(GetClock) UNUSED(GetIntervalDecimal) UNUSED(GetIntervalFraction) UNUSED(GetNumberOfVariableDependencies)
UNUSED(GetOutputDerivatives) UNUSED(GetShiftDecimal) UNUSED(GetShiftFraction) UNUSED(GetVariableDependencies)
UNUSED(SetBinary) UNUSED(SetClock) UNUSED(SetIntervalDecimal) UNUSED(SetIntervalFraction) UNUSED(SetShiftDecimal)
UNUSED(SetShiftFraction)
void *fmi3InstantiateScheduledExecution(void) { return 0; }
