"Adds the comparison of all attribute models on one network: `make tables PAPERS=common` loads it as an extension."

from disentangle_repro.common import PAPER
from disentangle_repro.papers import add_paper

add_paper(PAPER)
