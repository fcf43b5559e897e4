"""``python -m c4b``: the command ``c4b``, for environments whose scripts are not on the path."""

from c4b.cli.main import main

if __name__ == "__main__":
    main()
