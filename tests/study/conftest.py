"""The paper's study with a quarter of its episodes, run once for all tests that read it."""

import pytest

from c4b.study import artefacts, files
from c4b.study.results import Results
from c4b.study.run import run


@pytest.fixture(scope="session")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Results:
    study = files.load("paper").with_(episodes=64)
    found = run(study, tmp_path_factory.mktemp("paper"), command="c4b reproduce --episodes 64")
    artefacts.write(found)
    return found
