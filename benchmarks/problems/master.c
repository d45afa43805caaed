/* The hand-written master that everything is measured against: it knows its two FMUs, and the whole loop over macro
 * steps is one call. `jacobi` is the bare loop; `jacobi_recorded` checks every status and number and records every row;
 * `semi_implicit` couples two masses by the force of a spring: predictor, one difference column, corrector. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef int (*Values)(void *, const unsigned *, size_t, double *);
typedef struct {
    void *c, *state;
    Values get, set;
    int (*step)(void *, double, double, int), (*save)(void *, void **), (*restore)(void *, void *);
    void (*release)(void *);
} Fmu;
static Fmu one, two;

static int load(Fmu *f, const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) { fprintf(stderr, "%s\n", dlerror()); return 1; }
    void *(*make)(const char *, int, const char *, const char *, const void *, int, int) = dlsym(library, "fmi2Instantiate");
    int (*setup)(void *, int, double, double, int, double) = dlsym(library, "fmi2SetupExperiment");
    int (*enter)(void *) = dlsym(library, "fmi2EnterInitializationMode");
    int (*leave)(void *) = dlsym(library, "fmi2ExitInitializationMode");
    if (f->c) { f->release(f->c); free(f->state); }
    f->get = (Values)dlsym(library, "fmi2GetReal"); f->set = (Values)dlsym(library, "fmi2SetReal");
    f->step = (int (*)(void *, double, double, int))dlsym(library, "fmi2DoStep");
    f->save = (int (*)(void *, void **))dlsym(library, "fmi2GetFMUstate");
    f->restore = (int (*)(void *, void *))dlsym(library, "fmi2SetFMUstate");
    f->release = (void (*)(void *))dlsym(library, "fmi2FreeInstance");
    f->c = make("it", 1, "", "", NULL, 0, 0);
    f->state = NULL;
    return setup(f->c, 0, 0.0, 0.0, 0, 0.0) | enter(f->c) | leave(f->c);
}

/* Fresh instances of both FMUs; the numbers given are parameters and start values of the second one. */
int start(const char *first, const char *second, const unsigned *vr, size_t n, double *values) {
    return load(&one, first) | load(&two, second) | (n ? two.set(two.c, vr, n, values) : 0);
}

static const unsigned XV[] = {6, 7}, U[] = {8, 9}, FXV[] = {10, 6, 7};

void jacobi(long n, double H, double *end) {
    double motion[2], out[3];
    one.get(one.c, XV, 2, motion);
    two.set(two.c, U, 2, motion);
    two.get(two.c, FXV, 3, out);
    for (long k = 0; k < n; k++) {
        one.set(one.c, U, 1, out);
        two.set(two.c, U, 2, motion);
        one.step(one.c, k * H, H, 1);
        two.step(two.c, k * H, H, 1);
        one.get(one.c, XV, 2, motion);
        two.get(two.c, FXV, 3, out);
    }
    end[0] = motion[0]; end[1] = motion[1]; end[2] = out[0]; end[3] = out[1]; end[4] = out[2];
}

/* `rows` gets t, the five outputs and the three coupling variables of every step. Returns the steps taken. */
long jacobi_recorded(long n, double H, double *rows) {
    double motion[2], out[3];
    if (one.get(one.c, XV, 2, motion) || two.set(two.c, U, 2, motion) || two.get(two.c, FXV, 3, out)) return 0;
    for (long k = 0; k < n; k++) {
        if (one.set(one.c, U, 1, out) || two.set(two.c, U, 2, motion)) return k;
        if (one.step(one.c, k * H, H, 1) || two.step(two.c, k * H, H, 1)) return k;
        if (one.get(one.c, XV, 2, motion) || two.get(two.c, FXV, 3, out)) return k;
        if (!(isfinite(motion[0]) && isfinite(motion[1]) && isfinite(out[0]) && isfinite(out[1]) && isfinite(out[2]))) return k;
        double *row = rows + 9 * k;
        row[0] = (k + 1) * H;
        row[1] = row[6] = motion[0]; row[2] = row[7] = motion[1];
        row[3] = row[8] = out[0]; row[4] = out[1]; row[5] = out[2];
    }
    return n;
}

/* Two masses with force inputs, lam = ck (x2 - x1) + dk (v2 - v1) on the first and -lam on the second. */
static double sweep(double t, double H, double lam, double *y, double ck, double dk) {
    double minus = -lam;
    one.set(one.c, U, 1, &lam);
    two.set(two.c, U, 1, &minus);
    one.step(one.c, t, H, 0);
    two.step(two.c, t, H, 0);
    one.get(one.c, XV, 2, y);
    two.get(two.c, XV, 2, y + 2);
    return lam - ck * (y[2] - y[0]) - dk * (y[3] - y[1]);
}

static double first_force(double *y, double ck, double dk) {
    one.get(one.c, XV, 2, y);
    two.get(two.c, XV, 2, y + 2);
    return ck * (y[2] - y[0]) + dk * (y[3] - y[1]);
}

void semi_implicit(long n, double H, double ck, double dk, double *end) {
    double y[4], size = 1e-12, lam = first_force(y, ck, dk);
    for (long k = 0; k < n; k++) {
        double t = k * H;
        one.save(one.c, &one.state); two.save(two.c, &two.state);
        double r = sweep(t, H, lam, y, ck, dk);
        double by = 1e-6 * fmax(fabs(lam), size);
        one.restore(one.c, one.state); two.restore(two.c, two.state);
        double slope = (sweep(t, H, lam + by, y, ck, dk) - r) / by;
        lam -= r / slope;
        one.restore(one.c, one.state); two.restore(two.c, two.state);
        sweep(t, H, lam, y, ck, dk);
        size = fmax(size, fabs(lam));
        lam = ck * (y[2] - y[0]) + dk * (y[3] - y[1]); /* what the outputs ask for starts the next step */
    }
    for (int i = 0; i < 4; i++) end[i] = y[i];
}

/* The same two masses, explicitly: the plain sweep that rollback is compared with. */
void force_jacobi(long n, double H, double ck, double dk, double *end) {
    double y[4], lam = first_force(y, ck, dk);
    for (long k = 0; k < n; k++) {
        sweep(k * H, H, lam, y, ck, dk);
        lam = ck * (y[2] - y[0]) + dk * (y[3] - y[1]);
    }
    for (int i = 0; i < 4; i++) end[i] = y[i];
}
