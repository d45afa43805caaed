/* Functions of FMI 3.0 that no model here has use for; a library must export them all the same. Every one is an error, and
 * their arguments do not matter, so this file does without the FMI headers. */
#define UNUSED(NAME) int fmi3##NAME(void) { return 3; } /* fmi3Error */
UNUSED(ActivateModelPartition)
UNUSED(EvaluateDiscreteStates)
UNUSED(GetBinary)
UNUSED(GetClock)
UNUSED(GetIntervalDecimal)
UNUSED(GetIntervalFraction)
UNUSED(GetNumberOfVariableDependencies)
UNUSED(GetShiftDecimal)
UNUSED(GetShiftFraction)
UNUSED(GetVariableDependencies)
UNUSED(SetBinary)
UNUSED(SetClock)
UNUSED(SetIntervalDecimal)
UNUSED(SetIntervalFraction)
UNUSED(SetShiftDecimal)
UNUSED(SetShiftFraction)
