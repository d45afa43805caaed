"""Plain Python functions as machine code: they are run once on stand-ins that note what is computed.

A leaf of the package: functions go in, addresses come out (`Module`), or the reason why not, with file and line.
"""

from cosolve.trace.traced import Module, Traced, plain_function, trace
