/* The model of the zoo, and how each animal misbehaves; fmi2.c and fmi3.c put the C interfaces around it.
 *
 * A first-order lag with its input held over a step, advanced exactly: x' = rate (gain u - x), y = 2 x. One library holds
 * all behaviours; the token that comes with the instantiation names the one that this instance has ("zoo GOES_BACK"). */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEHAVIOURS                                                                                                   \
    X(PLAIN) X(GOES_BACK) X(FORGETS_EARLY) X(RESET_FREEZES) X(RESET_GARBAGE) X(RESET_ERRORS) X(RESET_CRASHES)        \
    X(OUTPUTS_LATE) X(OUTPUTS_IN_STEP) X(GRID_DOWN) X(GRID_UP) X(OWN_STEP) X(IGNORES_PARAMETER) X(CLAMPS_PARAMETER)  \
    X(DISCARDS) X(ENDS) X(CHANGES_MIND) X(WARNS) X(PENDING) X(RESOURCES) X(WORKING_FOLDER) X(CHATTY) X(FORMATS)      \
    X(STATE_KEPT) X(STATE_HALF) X(HIDDEN) X(SERIAL_LIES) X(WRONG_SIGN) X(TRANSPOSED) X(ONCE) X(ONCE_EVER) X(SHARED)  \
    X(LEAKS) X(RANDOM) X(FREE_ABORTS) X(TYPES) X(REMEMBERS)                                                         \
    X(SAMPLES) X(STEADY) X(STEADY_LATE) X(ENGAGES) X(FADES) X(ROUNDS) X(LAGS) X(CRASHES_SAVING) X(CRASHES_RESTORING) \
    X(STOP_TIME) X(LATE_INPUT) X(LATE_OUTPUT) X(DEAF) X(DENIES)
enum {
#define X(NAME) NAME,
    BEHAVIOURS
#undef X
    N_BEHAVIOURS
};
static const char *const behaviour_names[] = {
#define X(NAME) #NAME,
    BEHAVIOURS
#undef X
};

enum { TIME, RATE, GAIN, STATE, INPUT, OUTPUT, SLOPE, N_LAG, /* all animals have these */
       SMALL = 20, SUM, SWITCH, LAMP, GEAR, SHIFT, HALF, FIELD = 30, FIELD_OUT = 33, SIZE = 64 };
enum { INSTANTIATED, INITIALISING, STEPPING, TERMINATED };
enum { OK, WARNING, DISCARD, ERROR, FATAL, PENDING_STATUS };

typedef struct {
    double r[SIZE]; /* all numbers, by value reference */
    double t, grid, hidden, shown, late;
    int mode, frozen, garbage;
} State;

typedef struct Instance {
    State s;
    int behaviour, ended, disarmed;
    double fuel, last_input, stop; /* what no saved state holds */
    double reached;
    char name[64], text[256];
    void *environment;
    const void *callbacks; /* the logger, as the version of FMI has it */
} Instance;

static void tell(Instance *i, int status, const char *category, const char *text);

static double shared_state;          /* one for all instances, as in code made from a library with globals */
static int living, born;             /* instances now, and ever */
static unsigned dice;

static void defaults(Instance *i) {
    memset(&i->s, 0, sizeof(State));
    i->s.r[RATE] = 2.0; i->s.r[GAIN] = 1.0; i->s.r[STATE] = 1.0;
    i->s.r[SWITCH] = 1.0; i->s.r[GEAR] = 2.0;
    shared_state = 1.0;
    i->disarmed = 0;
    i->fuel = 1.0;
    i->last_input = 0.0;
}

static int behaviour_of(const char *token) {
    for (int k = 0; k < N_BEHAVIOURS; k++)
        if (strncmp(token, "zoo ", 4) == 0 && strcmp(token + 4, behaviour_names[k]) == 0) return k;
    return -1;
}

/* A file's first number; the folder comes as a URI (FMI 2.0) or as a path that ends with a slash (FMI 3.0). */
static int read_number(const char *folder, const char *file, double *number) {
    char path[4096];
    size_t n = 0;
    if (strncmp(folder, "file://", 7) == 0) folder += 7;
    for (const char *p = folder; *p && n + 8 < sizeof path; p++) {
        unsigned code;
        if (*p == '%' && sscanf(p + 1, "%2x", &code) == 1) { path[n++] = (char)code; p += 2; }
        else path[n++] = *p;
    }
    if (n && path[n - 1] != '/') path[n++] = '/';
    snprintf(path + n, sizeof path - n, "%s", file);
    FILE *stream = fopen(path, "r");
    int found = stream && fscanf(stream, "%lf", number) == 1;
    if (stream) fclose(stream);
    return found;
}

static Instance *make(const char *name, const char *token, const char *resources, void *environment, const void *callbacks) {
    Instance *i = calloc(1, sizeof(Instance));
    i->environment = environment;
    i->callbacks = callbacks;
    i->behaviour = behaviour_of(token);
    snprintf(i->name, sizeof i->name, "%s", name);
    defaults(i);
    int here = 1;
    double rate = 0.0;
    if (i->behaviour < 0) { tell(i, ERROR, "logStatusError", "the token is not one of the zoo"); here = 0; }
    if (i->behaviour == ONCE && living) { tell(i, ERROR, "logStatusError", "one instance is there already"); here = 0; }
    if (i->behaviour == ONCE_EVER && born) { tell(i, ERROR, "logStatusError", "one instance was there already"); here = 0; }
    if (i->behaviour == RESOURCES || i->behaviour == WORKING_FOLDER) {
        here = read_number(i->behaviour == RESOURCES && resources ? resources : ".", "rate.txt", &rate);
        if (!here) tell(i, ERROR, "logStatusError", "there is no rate.txt");
    }
    if (!here) { free(i); return NULL; }
    if (i->behaviour == REMEMBERS) { /* what an earlier instance left in the environment of the process */
        const char *earlier = getenv("COSOLVE_ZOO_COUNT");
        char count[32];
        snprintf(count, sizeof count, "%d", earlier ? atoi(earlier) + 1 : 1);
        setenv("COSOLVE_ZOO_COUNT", count, 1);
        i->s.r[RATE] += 0.1 * atoi(count);
    }
    static void *volatile lost; /* seen from outside, so that the compiler does not spare the call */
    if (i->behaviour == LEAKS) lost = memset(malloc(1 << 20), 1, 1 << 20);
    living++; born++;
    return i;
}

static void release(Instance *i) {
    if (i->behaviour == FREE_ABORTS) abort();
    living--;
    free(i);
}

static int reset(Instance *i) {
    switch (i->behaviour) {
        case RESET_CRASHES: *(volatile int *)8 = 1; break;
        case RESET_ERRORS: tell(i, ERROR, "logStatusError", "reset is not made"); return ERROR;
        case RESET_FREEZES: defaults(i); i->s.frozen = 1; return OK;
        case RESET_GARBAGE: defaults(i); i->s.garbage = 1; return OK;
    }
    defaults(i);
    return OK;
}

static double read_rate(Instance *i, const char *resources) { /* what the file says wins over the parameter */
    double rate = i->s.r[RATE];
    (void)read_number(resources, "rate.txt", &rate);
    return rate;
}

static void evaluate(Instance *i) {
    State *s = &i->s;
    int steady = i->behaviour == STEADY || i->behaviour == STEADY_LATE;
    if (steady && s->mode == INITIALISING) s->r[STATE] = s->r[GAIN] * s->r[INPUT];
    double *r = s->r, x = i->behaviour == SHARED ? shared_state : r[STATE];
    r[TIME] = s->t;
    r[STATE] = x;
    r[OUTPUT] = 2.0 * x + s->hidden;
    r[SLOPE] = r[RATE] * (r[GAIN] * r[INPUT] - x);
    if (i->behaviour == LATE_OUTPUT && s->t > 0.0) r[OUTPUT] = s->late;
    if (i->behaviour == DENIES) r[OUTPUT] += 0.3 * r[INPUT];
    if (i->behaviour == STOP_TIME) r[OUTPUT] = i->stop;
    if ((i->behaviour == OUTPUTS_LATE || i->behaviour == STEADY_LATE) && s->mode < STEPPING) r[OUTPUT] = 0.0;
    if (i->behaviour == OUTPUTS_IN_STEP) r[OUTPUT] = s->shown;
    if (s->garbage) r[OUTPUT] = -6.2774385622041925e66;
    r[SUM] = fmax(-128.0, fmin(127.0, r[SMALL] * 2.0));
    r[LAMP] = r[SWITCH] > 0.5 && r[SMALL] > 0.0;
    r[SHIFT] = r[GEAR];
    r[HALF] = 0.5 * r[STATE];
    for (int k = 0; k < 3; k++) r[FIELD_OUT + k] = r[STATE] + r[FIELD + k];
}

static void set_number(Instance *i, unsigned vr, double value) {
    if (i->behaviour == IGNORES_PARAMETER && vr == GAIN) return;
    if (i->behaviour == CLAMPS_PARAMETER && vr == RATE) value = fmin(value, 2.5);
    i->s.r[vr] = value;
    if (i->behaviour == SHARED && vr == STATE) shared_state = value;
}

static void relax(Instance *i, double h) {
    double *r = i->s.r, rate = r[RATE] * (i->behaviour == FADES ? i->fuel : 1.0), e = exp(-rate * h);
    if (i->behaviour == SAMPLES) { r[STATE] = r[GAIN] * r[INPUT]; return; }
    if (i->behaviour == ENGAGES && i->s.hidden > 0.0) e = exp(-10.0 * r[RATE] * h);
    if (i->behaviour == LAGS) {
        r[STATE] = e * r[STATE] + (1.0 - e) * (r[GAIN] * (1.5 * r[INPUT] - 0.5 * i->last_input));
        i->last_input = r[INPUT];
        return;
    }
    double *x = i->behaviour == SHARED ? &shared_state : &r[STATE], u = r[INPUT];
    if (i->behaviour == LATE_OUTPUT) i->s.late = 2.0 * *x;
    if (i->behaviour == LATE_INPUT) { u = i->s.late; i->s.late = r[INPUT]; }
    *x = e * *x + (1.0 - e) * (r[GAIN] * u);
}

/* A step; `reached` and `ended` of the instance say how far it came and whether the run is to end. */
static int step(Instance *i, double t, double h, int no_return) {
    State *s = &i->s;
    double t1 = t + h, slack = 1e-9;
    i->reached = t;
    i->ended = 0;
    if (s->mode != STEPPING) { tell(i, ERROR, "logStatusError", "a step before the initialisation ends"); return ERROR; }
    switch (i->behaviour) {
        case GOES_BACK: if (!no_return) { i->reached = t1; return OK; } break;
        case OWN_STEP: if (fabs(h - 0.02) > slack) { tell(i, ERROR, "logStatusError", "my step is 0.02"); return ERROR; } break;
        case DISCARDS: if (t1 > 0.5 + slack) { i->reached = t + 0.25 * h; tell(i, DISCARD, "logStatusDiscard", "the tank is empty"); return DISCARD; } break;
        case CHANGES_MIND: if (t >= 0.5 - slack && h > 0.02 + slack) { tell(i, DISCARD, "logStatusDiscard", "from now on at most 0.02"); return DISCARD; } break;
        case PENDING: i->reached = t; if (t1 > 0.5 + slack) return PENDING_STATUS; break;
        case ENDS: if (t1 > 0.5 + slack) { i->ended = 1; tell(i, DISCARD, "logStatusDiscard", "the ship has arrived"); return DISCARD; } break;
        case WARNS: tell(i, WARNING, "logStatusWarning", "the table is extrapolated"); break;
        case CHATTY: for (int k = 0; k < 50; k++) printf("{\"step\": %g, \"line\": %d}\nno line end", t, k); fflush(stdout); break;
        case FORMATS: tell(i, OK, NULL, "100 %s %n %d {0} {} %"); break;
    }
    i->reached = t1;
    if (s->frozen) return OK;
    if (i->behaviour == GRID_DOWN)
        for (; s->grid + 0.03 <= t1 + slack; s->grid += 0.03) relax(i, 0.03);
    else if (i->behaviour == GRID_UP)
        for (; s->grid < t1 - slack; s->grid += 0.03) relax(i, 0.03);
    else
        relax(i, h);
    if (i->behaviour == HIDDEN || i->behaviour == STATE_HALF) s->hidden += h * s->r[INPUT];
    if (i->behaviour == ENGAGES && t1 > 0.4 - slack && !i->disarmed) s->hidden = 1.0; /* a clutch closes */
    if (i->behaviour == FADES) i->fuel *= 1.0 - 0.3 * h; /* fuel burns */
    if (i->behaviour == RANDOM) s->r[STATE] += 0.01 * (++dice % 7); /* never twice the same */
    s->shown = 2.0 * s->r[STATE];
    s->t = t1;
    return i->behaviour == WARNS ? WARNING : OK;
}

static void put_back(Instance *i, const State *saved) {
    double hidden = i->s.hidden;
    if (i->behaviour == STATE_KEPT) return;
    if (i->behaviour == CRASHES_RESTORING) *(volatile int *)8 = 1;
    i->s = *saved;
    if (i->behaviour == ENGAGES && saved->t < 0.4) i->disarmed = 1;
    if (i->behaviour == ROUNDS) i->s.r[STATE] = rint(i->s.r[STATE] * 1e6) * 1e-6;
    if (i->behaviour == STATE_HALF) i->s.hidden = hidden;
    if (i->behaviour == SHARED) shared_state = saved->r[STATE];
}

static void look_at(const Instance *i) { /* a state is about to be saved */
    if (i->behaviour == CRASHES_SAVING) *(volatile int *)8 = 1;
}

static double partial(const Instance *i, unsigned of, unsigned by) {
    const double *r = i->s.r;
    if (of == by) return 1.0;
    if (of == SLOPE) return by == STATE ? -r[RATE] : by == INPUT ? r[RATE] * r[GAIN] : 0.0;
    if (of == OUTPUT) return by == STATE ? 2.0 : 0.0;
    return 0.0;
}

static double sensitivity_of(const Instance *i, unsigned of, unsigned by) {
    return i->behaviour == TRANSPOSED ? partial(i, by, of) : (i->behaviour == WRONG_SIGN ? -1.0 : 1.0) * partial(i, of, by);
}
