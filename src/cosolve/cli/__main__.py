"""`python -m cosolve.cli`."""

from cosolve.cli import main

if __name__ == "__main__":
    main()
