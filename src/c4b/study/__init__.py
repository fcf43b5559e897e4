"""The paper's study, and yours: scenarios, episodes, statistics, tables, figures, report."""
