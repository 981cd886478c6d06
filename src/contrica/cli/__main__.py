"""``python -m contrica.cli`` is the shell command."""

from contrica.cli import main

if __name__ == "__main__":
    main()
