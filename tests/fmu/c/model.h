/* The struct of an instance; included by model files after their sizes are defined. */
typedef struct {
    double t;
    double r[N_VARIABLES];
    double du[ORDERS][N_VARIABLES]; /* input derivatives, FMI 2.0 */
    char text[MAX_TEXTS][TEXT_SIZE];
    int mode;
    int event_pending;
} Model;
