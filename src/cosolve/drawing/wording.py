"""Numbers in sentences and tables, for people."""


def number(value: float, digits: int = 4) -> str:
    """Whole numbers in full, others with a few digits.

    >>> number(12), number(12345678), number(0.123456)
    ('12', '12\u202f345\u202f678', '0.1235')
    """
    if float(value).is_integer() and (abs(value) < 1e6 or isinstance(value, int)):
        whole = int(value)
        return f"{whole:,}".replace(",", "\u202f") if abs(whole) >= 10_000 else str(whole)
    return f"{value:.{digits}g}"


def count(n: int, noun: str) -> str:
    """`1 step`, `2 steps`.

    >>> count(1, "step"), count(2, "step")
    ('1 step', '2 steps')
    """
    return f"{number(n)} {noun}{'' if n == 1 else 's'}"
