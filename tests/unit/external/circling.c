/* A body on a circle, as an FMU of FMI 2 and FMI 3: what a co-simulation calls, by the standards' declarations. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { X, Y, Z, ROLL, PITCH, YAW, VX, VY, VZ, P, Q, R, RADIUS, SPEED, FAIL_AT, COUNT };

typedef struct {
    double value[COUNT];
} Model;

static void put(Model *m, double t) {
    double r = m->value[RADIUS], w = m->value[SPEED] / r, a = w * t;
    m->value[X] = r * cos(a), m->value[Y] = r * sin(a), m->value[Z] = 1.5;
    m->value[ROLL] = m->value[PITCH] = 0.0, m->value[YAW] = a + 1.5707963267948966;
    m->value[VX] = -r * w * sin(a), m->value[VY] = r * w * cos(a), m->value[VZ] = 0.0;
    m->value[P] = m->value[Q] = 0.0, m->value[R] = w;
}

static void *make(void) {
    Model *m = calloc(1, sizeof *m);
    m->value[RADIUS] = 10.0, m->value[SPEED] = 5.0, m->value[FAIL_AT] = 1e9;
    put(m, 0.0);
    return m;
}

static int get(Model *m, const unsigned *refs, size_t n, double *out) {
    for (size_t i = 0; i < n; i++) {
        if (refs[i] >= COUNT) return 3;
        out[i] = m->value[refs[i]];
    }
    return 0;
}

static int set(Model *m, const unsigned *refs, size_t n, const double *in) {
    for (size_t i = 0; i < n; i++) {
        if (refs[i] >= COUNT) return 3;
        m->value[refs[i]] = in[i];
    }
    put(m, 0.0);
    return 0;
}

static int step(Model *m, double t, double h) {
    if (t + h > m->value[FAIL_AT]) return 3;
    put(m, t + h);
    return 0;
}

/* FMI 2 */
void *fmi2Instantiate(const char *a, int b, const char *c, const char *d, const void *e, int f, int g) { return make(); }
void fmi2FreeInstance(void *m) { free(m); }
int fmi2SetupExperiment(void *m, int a, double b, double c, int d, double e) { return 0; }
int fmi2EnterInitializationMode(void *m) { return 0; }
int fmi2ExitInitializationMode(void *m) { return 0; }
int fmi2Terminate(void *m) { return 0; }
int fmi2GetReal(void *m, const unsigned *r, size_t n, double *v) { return get(m, r, n, v); }
int fmi2SetReal(void *m, const unsigned *r, size_t n, const double *v) { return set(m, r, n, v); }
int fmi2DoStep(void *m, double t, double h, int a) { return step(m, t, h); }

/* FMI 3 */
void *fmi3InstantiateCoSimulation(const char *a, const char *b, const char *c, _Bool d, _Bool e, _Bool f, _Bool g, const unsigned *h, size_t i, void *j,
                                  void *k, void *l) {
    return make();
}
void fmi3FreeInstance(void *m) { free(m); }
int fmi3EnterInitializationMode(void *m, _Bool a, double b, double c, _Bool d, double e) { return 0; }
int fmi3ExitInitializationMode(void *m) { return 0; }
int fmi3Terminate(void *m) { return 0; }
int fmi3GetFloat64(void *m, const unsigned *r, size_t n, double *v, size_t nv) { return get(m, r, n, v); }
int fmi3SetFloat64(void *m, const unsigned *r, size_t n, const double *v, size_t nv) { return set(m, r, n, v); }
int fmi3DoStep(void *m, double t, double h, _Bool a, _Bool *event, _Bool *ended, _Bool *early, double *last) {
    *event = 0, *ended = 0, *early = 0, *last = t + h;
    return step(m, t, h);
}

/* Functions that the standards require and that the test does not call. */
#define UNUSED(name) int name(void) { return 3; }
UNUSED(fmi2CancelStep)
UNUSED(fmi2CompletedIntegratorStep)
UNUSED(fmi2DeSerializeFMUstate)
UNUSED(fmi2EnterContinuousTimeMode)
UNUSED(fmi2EnterEventMode)
UNUSED(fmi2FreeFMUstate)
UNUSED(fmi2GetBoolean)
UNUSED(fmi2GetBooleanStatus)
UNUSED(fmi2GetContinuousStates)
UNUSED(fmi2GetDerivatives)
UNUSED(fmi2GetDirectionalDerivative)
UNUSED(fmi2GetEventIndicators)
UNUSED(fmi2GetFMUstate)
UNUSED(fmi2GetInteger)
UNUSED(fmi2GetIntegerStatus)
UNUSED(fmi2GetNominalsOfContinuousStates)
UNUSED(fmi2GetRealOutputDerivatives)
UNUSED(fmi2GetRealStatus)
UNUSED(fmi2GetStatus)
UNUSED(fmi2GetString)
UNUSED(fmi2GetStringStatus)
UNUSED(fmi2GetTypesPlatform)
UNUSED(fmi2GetVersion)
UNUSED(fmi2NewDiscreteStates)
UNUSED(fmi2Reset)
UNUSED(fmi2SerializeFMUstate)
UNUSED(fmi2SerializedFMUstateSize)
UNUSED(fmi2SetBoolean)
UNUSED(fmi2SetContinuousStates)
UNUSED(fmi2SetDebugLogging)
UNUSED(fmi2SetFMUstate)
UNUSED(fmi2SetInteger)
UNUSED(fmi2SetRealInputDerivatives)
UNUSED(fmi2SetString)
UNUSED(fmi2SetTime)
UNUSED(fmi3ActivateModelPartition)
UNUSED(fmi3CompletedIntegratorStep)
UNUSED(fmi3DeserializeFMUState)
UNUSED(fmi3EnterConfigurationMode)
UNUSED(fmi3EnterContinuousTimeMode)
UNUSED(fmi3EnterEventMode)
UNUSED(fmi3EnterStepMode)
UNUSED(fmi3EvaluateDiscreteStates)
UNUSED(fmi3ExitConfigurationMode)
UNUSED(fmi3FreeFMUState)
UNUSED(fmi3GetAdjointDerivative)
UNUSED(fmi3GetBinary)
UNUSED(fmi3GetBoolean)
UNUSED(fmi3GetClock)
UNUSED(fmi3GetContinuousStateDerivatives)
UNUSED(fmi3GetContinuousStates)
UNUSED(fmi3GetDirectionalDerivative)
UNUSED(fmi3GetEventIndicators)
UNUSED(fmi3GetFMUState)
UNUSED(fmi3GetFloat32)
UNUSED(fmi3GetInt16)
UNUSED(fmi3GetInt32)
UNUSED(fmi3GetInt64)
UNUSED(fmi3GetInt8)
UNUSED(fmi3GetIntervalDecimal)
UNUSED(fmi3GetIntervalFraction)
UNUSED(fmi3GetNominalsOfContinuousStates)
UNUSED(fmi3GetNumberOfContinuousStates)
UNUSED(fmi3GetNumberOfEventIndicators)
UNUSED(fmi3GetNumberOfVariableDependencies)
UNUSED(fmi3GetOutputDerivatives)
UNUSED(fmi3GetShiftDecimal)
UNUSED(fmi3GetShiftFraction)
UNUSED(fmi3GetString)
UNUSED(fmi3GetUInt16)
UNUSED(fmi3GetUInt32)
UNUSED(fmi3GetUInt64)
UNUSED(fmi3GetUInt8)
UNUSED(fmi3GetVariableDependencies)
UNUSED(fmi3GetVersion)
UNUSED(fmi3InstantiateModelExchange)
UNUSED(fmi3InstantiateScheduledExecution)
UNUSED(fmi3Reset)
UNUSED(fmi3SerializeFMUState)
UNUSED(fmi3SerializedFMUStateSize)
UNUSED(fmi3SetBinary)
UNUSED(fmi3SetBoolean)
UNUSED(fmi3SetClock)
UNUSED(fmi3SetContinuousStates)
UNUSED(fmi3SetDebugLogging)
UNUSED(fmi3SetFMUState)
UNUSED(fmi3SetFloat32)
UNUSED(fmi3SetInt16)
UNUSED(fmi3SetInt32)
UNUSED(fmi3SetInt64)
UNUSED(fmi3SetInt8)
UNUSED(fmi3SetIntervalDecimal)
UNUSED(fmi3SetIntervalFraction)
UNUSED(fmi3SetShiftDecimal)
UNUSED(fmi3SetShiftFraction)
UNUSED(fmi3SetString)
UNUSED(fmi3SetTime)
UNUSED(fmi3SetUInt16)
UNUSED(fmi3SetUInt32)
UNUSED(fmi3SetUInt64)
UNUSED(fmi3SetUInt8)
UNUSED(fmi3UpdateDiscreteStates)
