"""A judge that other processes can load quickly."""

import os


def judge(case: str, pid: int) -> tuple[str, str]:
    if case == "crashes":
        os.kill(os.getpid(), 9)
    return "right", case
