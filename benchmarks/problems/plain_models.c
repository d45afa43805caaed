/* The models of plain_models.py under Jacobi(1), ode4 in two internal steps, written out by hand; result: a sum of outputs. */
#include <math.h>

typedef void rhs_t(double t, const double *x, const double *u, double *dx);

static inline void rk4(rhs_t *f, int n, int nu, double *x, const double *now, const double *before, double H)
{
    double k[4][64], s[64], u[4], h = H / 2;
    static const double at[4] = {0, 0.5, 0.5, 1};
    for (int m = 0; m < 2; m++) {
        for (int i = 0; i < 4; i++) {
            double c = (m + at[i]) / 2;
            for (int q = 0; q < nu; q++) u[q] = now[q] + c * (now[q] - before[q]);
            for (int q = 0; q < n; q++) s[q] = i ? x[q] + h * at[i] * k[i - 1][q] : x[q];
            f(0, s, u, k[i]);
        }
        for (int q = 0; q < n; q++) x[q] += h / 6 * (k[0][q] + 2 * k[1][q] + 2 * k[2][q] + k[3][q]);
    }
}

static inline void mass1(double t, const double *s, const double *u, double *d) { d[0] = s[1]; d[1] = u[0]; }
static inline void mass2(double t, const double *s, const double *u, double *d) { d[0] = s[1]; d[1] = -u[0] / 2.0; }

double pair(long steps)
{
    double a[2] = {0, 0}, b[2] = {1, 0}, sum = 0, f = 100, g = 100;
    for (long n = 0; n < steps; n++) {
        rk4(mass1, 2, 1, a, &f, &g, 0.02);
        rk4(mass2, 2, 1, b, &f, &g, 0.02);
        g = f;
        f = 100 * (b[0] - a[0]) + 2 * (b[1] - a[1]);
        sum += a[0];
    }
    return sum;
}

static inline double spring(const double *x, const double *u) { return 2e4 * (x[0] - u[0]) + 1500 * (x[1] - u[1]); }
static inline void body(double t, const double *x, const double *u, double *d) { d[0] = x[1]; d[1] = -spring(x, u) / 300; }
static inline void wheel(double t, const double *x, const double *u, double *d)
{
    d[0] = x[1];
    d[1] = (u[0] + 2e5 * (0.05 - x[0])) / 40;
}

double car(long steps)
{
    double a[2] = {0, 0}, b[2] = {0, 0}, sum = 0, z[3] = {0, 0, 0}, y[3] = {0, 0, 0};
    for (long n = 0; n < steps; n++) {
        rk4(body, 2, 2, a, z, y, 5e-3);
        rk4(wheel, 2, 1, b, z + 2, y + 2, 5e-3);
        double force = spring(a, z);
        for (int k = 0; k < 3; k++) y[k] = z[k];
        z[0] = b[0], z[1] = b[1], z[2] = force;
        sum += a[0];
    }
    return sum;
}

static inline void rod1(double t, const double *s, const double *u, double *d)
{
    double c = cos(s[0]), n = sin(s[0]);
    d[0] = s[1];
    d[1] = (-500 * (s[0] - 5 * M_PI / 16) - 5 * s[1] - 0.5 * 9.81 * c + c * u[1] - n * u[0]) * 3;
}
static inline void rod2(double t, const double *s, const double *u, double *d)
{
    d[0] = s[3], d[1] = s[4], d[2] = s[5], d[3] = -u[0], d[4] = -u[1] - 9.81;
    d[5] = (0.5 * cos(s[2]) * u[1] - 0.5 * sin(s[2]) * u[0]) * 12;
}

double pendulum(long steps)
{
    double p = M_PI / 4, a[2] = {p, 0}, b[6] = {1.5 * cos(p), 0.5 * sin(p), -p, 0, 0, 0}, z[2] = {0, 0}, y[2] = {0, 0}, sum = 0;
    for (long n = 0; n < steps; n++) {
        rk4(rod1, 2, 2, a, z, y, 1e-3);
        rk4(rod2, 6, 2, b, z, y, 1e-3);
        double ca = cos(a[0]), sa = sin(a[0]), cb = cos(b[2]), sb = sin(b[2]);
        y[0] = z[0], y[1] = z[1];
        z[0] = 1e5 * (b[0] - 0.5 * cb - ca) + 1e2 * (b[3] + 0.5 * sb * b[5] + sa * a[1]);
        z[1] = 1e5 * (b[1] - 0.5 * sb - sa) + 1e2 * (b[4] - 0.5 * cb * b[5] - ca * a[1]);
        sum += a[0];
    }
    return sum;
}

static inline void half(double t, const double *s, const double *u, double *d)
{
    for (int k = 0; k < 25; k++) {
        double left = s[k] - (k ? s[k - 1] : 0), right = (k < 24 ? s[k + 1] : s[k]) - s[k];
        d[k] = s[25 + k];
        d[25 + k] = 100 * (right - left) + 10 * (right * right * right - left * left * left) - 0.1 * s[25 + k];
    }
    d[49] += u[0];
}

double chain(long steps)
{
    double a[50], b[50], f = 0, g = 0, sum = 0;
    for (int k = 0; k < 25; k++) a[k] = 0.02 * sin(0.3 * k), b[k] = -0.5 * a[k], a[25 + k] = b[25 + k] = 0;
    for (long n = 0; n < steps; n++) {
        double minus = -f, before = -g;
        rk4(half, 50, 1, a, &f, &g, 1e-2);
        rk4(half, 50, 1, b, &minus, &before, 1e-2);
        double r = b[24] - a[24];
        g = f;
        f = 100 * r + 10 * r * r * r;
        sum += a[24];
    }
    return sum;
}
