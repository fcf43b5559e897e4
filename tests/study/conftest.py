"""The paper's study with a quarter of its episodes, run once for all tests that read it."""

import pytest

from c4b.study.engine.run import run
from c4b.study.report.write_report import write_report
from c4b.study.results.results import Results
from c4b.study.spec import study_file as files


@pytest.fixture(scope="session")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Results:
    study = files.load("paper").with_(episodes=64)
    found = run(study, tmp_path_factory.mktemp("paper"), command="c4b reproduce --episodes 64")
    write_report(found)
    return found
