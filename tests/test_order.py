"""The files that run first are there."""

import pytest
from tests.order import LONG, TESTS


@pytest.mark.parametrize("name", LONG)
def test_a_file_of_that_name_exists(name):
    assert (TESTS / name).is_file()
