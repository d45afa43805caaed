/* The shared-memory channel of Python calls (src/cosolve/process/shared_memory.py), for SPIN.
 *
 * Python's plain loads and stores on x86: stores wait in a buffer, in order, and a later load may overtake them. What
 * touches the pipe is a system call and empties the buffer. Messages alternate: asked, answered, asked. A message that
 * does not fit goes through the pipe, announced by IN_PIPE. The reader may be asleep; its sleeps are limited.
 * Checked: no torn read, no lost or doubled message, no deadlock, and both come to their end, also when one dies.
 *
 * -DNO_NAP (sleeps without a limit), -DCOUNTER_FIRST, -DUNORDERED (stores leave the buffer in any order, as on other
 * processors) and -DNO_EOF each break one rule: the check must fail.
 */
#ifndef ROUNDS
#define ROUNDS 2
#endif
#define WAKE 100
#define IN_PIPE 50
#define DATA 0
#define COUNTER 1
#define ASLEEP 2

byte word[6];                          /* data (with its length), counter, flag of the sleeping reader: per direction */
chan buffer[2] = [5] of { byte, byte };
chan pipe[2] = [6] of { byte };        /* pipe[d] carries direction d; the side d writes into it */
bool killed[2], gone[2], ended[2];

#define AT(direction, what) (3 * (direction) + (what))
#define store(me, where, value) buffer[me] ! where, value
#define fence(me) empty(buffer[me])

active [2] proctype Memory() {
    byte where, value;
    end: do
#ifdef UNORDERED
    :: buffer[_pid] ?? where, value -> word[where] = value
    :: len(buffer[_pid]) > 1 -> atomic { buffer[_pid] ? where, value; buffer[_pid] ! where, value }
#else
    :: buffer[_pid] ? where, value -> word[where] = value
#endif
    od
}

inline send(me, n) {
    if
    :: true -> whole = n
    :: true -> whole = IN_PIPE
    fi;
#ifdef COUNTER_FIRST
    store(me, AT(me, COUNTER), n);
    store(me, AT(me, DATA), whole);
#else
    store(me, AT(me, DATA), whole);
    store(me, AT(me, COUNTER), n);
#endif
    if
    :: whole == IN_PIPE -> fence(me); pipe[me] ! n
    :: whole != IN_PIPE && word[AT(me, ASLEEP)] == 1 -> fence(me); pipe[me] ! WAKE
    :: whole != IN_PIPE && word[AT(me, ASLEEP)] == 0
    fi
}

inline receive(me, other, n) {
    early = false;
    if
    :: word[AT(other, COUNTER)] == n          /* spinning, for as long as it likes */
    :: true ->
        store(me, AT(other, ASLEEP), 1);
        do
        :: word[AT(other, COUNTER)] == n -> break
        :: word[AT(other, COUNTER)] != n ->
            fence(me);
            if
            :: nempty(pipe[other]) ->
                if
                :: word[AT(other, COUNTER)] == n -> break
                :: word[AT(other, COUNTER)] != n ->
                    pipe[other] ? came;
                    if
                    :: came == WAKE
                    :: else -> early = true; assert(came == n); break
                    fi
                fi
#ifndef NO_EOF
            :: gone[other] && empty(pipe[other]) -> over = true; break
#endif
#ifndef NO_NAP
            :: empty(pipe[other]) && word[AT(other, COUNTER)] == n    /* the nap is over, and it looks again */
#endif
            fi
        od;
        store(me, AT(other, ASLEEP), 0);
        if
        :: early || over
        :: else ->
            if
            :: word[AT(other, DATA)] != IN_PIPE ->
                do                             /* wake-ups that were not needed */
                :: nempty(pipe[other]) -> pipe[other] ? came; assert(came == WAKE)
                :: empty(pipe[other]) -> break
                od
            :: else
            fi
        fi
    fi;
    if
    :: early || over
    :: else ->
        if
        :: word[AT(other, DATA)] == IN_PIPE ->
            do
            :: pipe[other] ? came ->
                if
                :: came == WAKE
                :: else -> assert(came == n); break
                fi
            :: gone[other] && empty(pipe[other]) -> over = true; break
            od
        :: else -> assert(word[AT(other, DATA)] == n)
        fi
    fi
}

proctype Side(byte me) {
    byte n = 1, whole, came;
    bool early, over;
    {
        do
        :: n > ROUNDS || over -> break
        :: else ->
            if
            :: me == 0 -> send(0, n); receive(0, 1, n)
            :: else ->
                receive(1, 0, n);
                if
                :: over
                :: else -> send(1, n)
                fi
            fi;
            n++
        od
    } unless { killed[me] };
    fence(me);
    atomic { gone[me] = true; ended[me] = true }
}

active proctype Killer() {
    if
    :: true
    :: true -> killed[0] = true
    :: true -> killed[1] = true
    fi
}

init { atomic { run Side(0); run Side(1) } }

ltl ends { <> (ended[0] && ended[1]) }
