/* The compiled exchange between two processes (src/cosolve/process/exchange.py), for SPIN.
 *
 * Near is the run, Far the subsystem. All shared words are atomic and sequentially consistent there, and so they are
 * here: one statement is one access, except for the two data words, which are plain memory. Near asks STEPS times,
 * with saves and restores in between as it likes, then lets Far leave. Either may be killed at any moment.
 * Checked: no torn read, no lost or doubled request or answer, rollback carried out as noted, every wake-up written
 * once and read once, no deadlock, and both come to their end, also when the other one dies.
 *
 * -DCOUNTER_FIRST, -DFLAG_LATE, -DNO_EXCHANGE, -DNO_CONSUME and -DNO_EOF each break one rule: the check must fail.
 */
#ifndef STEPS
#define STEPS 3
#endif
#define WAKE 1
#define MESSAGE 2
#define NOTHING 0
#define SAVE 1
#define RESTORE 2

byte request, answer;                  /* counters */
byte q0, q1, a0, a1, keep;             /* data: what is asked, what is answered, what to do first */
bool leaving;
bool near_asleep, far_asleep;
chan to_near = [4] of { byte };        /* the pipe between the two */
chan to_far = [4] of { byte };
bool near_killed, far_killed;
bool near_alive = true, far_alive = true;
byte wanted_state, wanted_slot;        /* of Far, as Near understands it */
bool near_ended, far_ended;

/* after the data: store the counter, then wake the other side where it sleeps */
inline publish(counter, count, flag, pipe) {
    counter = count;
#ifdef NO_EXCHANGE
    if
    :: flag -> pipe ! WAKE; flag = false
    :: !flag
    fi
#else
    if
    :: flag ->
        atomic { got = flag; flag = false };   /* exchange */
        if
        :: got -> pipe ! WAKE
        :: else
        fi
    :: !flag
    fi
#endif
}

/* sleep on the pipe: a wake-up is read, or the end of file tells that the other side is gone */
inline sleep(pipe, alive, over) {
    if
    :: pipe ? got_byte -> assert(got_byte == WAKE)
#ifndef NO_EOF
    :: !alive && empty(pipe) -> over = true
#endif
    fi
}

inline wait_for(counter, count, flag, pipe, alive, over) {
    if                                         /* spinning, for as long as it likes */
    :: counter == count
    :: true ->
#ifndef FLAG_LATE
        flag = true;
#endif
        do
        :: counter == count -> break
        :: else ->
#ifdef FLAG_LATE
            flag = true;
#endif
            sleep(pipe, alive, over);
            if
            :: over -> break
            :: else -> flag = true
            fi
        od;
        atomic { got = flag; flag = false };   /* exchange */
#ifndef NO_CONSUME
        if
        :: !got && !over -> sleep(pipe, alive, lost)    /* a wake-up is on its way */
        :: else
        fi
#endif
    fi
}

proctype Near() {
    byte n, kept, got_byte;
    bool got, over, lost, has_slot;
    {
        do
        :: n < STEPS ->
            if
            :: true
            :: true ->
                if
                :: kept != RESTORE -> kept = SAVE
                :: else
                fi;
                has_slot = true;
                wanted_slot = wanted_state
            :: has_slot ->
                if
                :: kept != SAVE -> kept = RESTORE
                :: else
                fi;
                wanted_state = wanted_slot
            fi;
            n++;
#ifdef COUNTER_FIRST
            publish(request, n, far_asleep, to_far);
            q0 = n; q1 = n; keep = kept;
#else
            q0 = n; q1 = n; keep = kept;
            publish(request, n, far_asleep, to_far);
#endif
            wait_for(answer, n, near_asleep, to_near, far_alive, over);
            if
            :: over -> break
            :: else
            fi;
            kept = NOTHING;
            wanted_state++;
            assert(a0 == wanted_state && a1 == wanted_state)
        :: n == STEPS ->
            leaving = true;
            keep = kept;
            publish(request, n + 1, far_asleep, to_far);
            to_far ! MESSAGE;                  /* the next call goes the ordinary way */
            break
        od
    } unless { near_killed };
    atomic { near_alive = false; near_ended = true }
}

proctype Far() {
    byte n, state, slot, got_byte;
    bool got, over, lost;
    {
        do
        :: n++;
            wait_for(request, n, far_asleep, to_far, near_alive, over);
            if
            :: over -> break
            :: else
            fi;
            if
            :: keep == SAVE && !leaving -> slot = state
            :: keep == RESTORE -> state = slot
            :: else
            fi;
            if
            :: leaving ->
                assert(state == wanted_state);
                if
                :: to_far ? got_byte -> assert(got_byte == MESSAGE)     /* no wake-up was left over */
                :: !near_alive && empty(to_far)
                fi;
                break
            :: else
            fi;
            assert(q0 == n && q1 == n);
            state++;
#ifdef COUNTER_FIRST
            publish(answer, n, near_asleep, to_near);
            a0 = state; a1 = state
#else
            a0 = state; a1 = state;
            publish(answer, n, near_asleep, to_near)
#endif
        od
    } unless { far_killed };
    atomic { far_alive = false; far_ended = true }
}

active proctype Killer() {
    if
    :: true
    :: true -> near_killed = true
    :: true -> far_killed = true
    fi
}

init { atomic { run Near(); run Far() } }

ltl ends { <> (near_ended && far_ended) }
