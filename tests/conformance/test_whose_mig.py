"The numbers that the report shows are what the functions give."

import pandas as pd
import pytest

from disentangle_repro.core.files import project_root
from disentangle_repro.report.whose_mig import RECORD, definition_table, encoders, every_score, read_record

SCORES, DEFINITIONS = read_record(project_root() / "paper_tables" / RECORD)


def test_definitions_are_as_recorded():
    pd.testing.assert_frame_equal(definition_table(), DEFINITIONS, atol=1e-6)


def test_the_scores_of_the_sources_themselves_are_as_recorded():
    name = "each source in a latent, exactly"
    assert every_score(encoders()[name]) == pytest.approx(SCORES.loc[name].to_dict(), abs=1e-3)
    assert list(SCORES.index) == list(encoders())
