"SIGKILL at random moments of a table: the driver alone, or everything at once as when the power fails."

import random
from itertools import count

import pytest
from project import start_and_kill


@pytest.mark.whole
def test_a_table_killed_at_random_moments_ends_as_an_undisturbed_one(undisturbed, tally, tmp_path):
    "Within half the time that a whole table takes; what comes later in it is reached by going on."
    (expected, seconds), chance = undisturbed, random.Random(0)
    kills, n, lost, believed, equal = 50, 0, 0, 0, True
    for table in count():
        if n == kills:
            break
        project = expected.another(tmp_path / str(table))
        while n < kills:
            harm = start_and_kill(project, chance.uniform(0.5, seconds / 2), power_cut=chance.random() < 0.5)
            if harm is None:
                break
            n, lost, believed = n + 1, lost + harm["lost"], believed + harm["believed"]
        assert project.make() == 0, project.said()
        equal &= project.results() == expected.results() and project.numbers() == expected.numbers()
    tally("SIGKILL of a table", times=n, lost=lost, believed=believed, equal=equal)
