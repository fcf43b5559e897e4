"""``python -m c4b``: the command ``c4b``, for environments whose scripts are not on the path."""

import sys


def run() -> None:
    """Run the command. Ctrl-C ends it quietly also while its parts are imported, which takes a while."""
    try:
        from c4b.cli.main import main  # noqa: PLC0415 (so that this function is there first)
    except KeyboardInterrupt:
        sys.exit(130)
    main()


if __name__ == "__main__":
    run()
