"""`python -m learnable.cli` is the same as `learnable`."""

from .app import main

if __name__ == "__main__":
    main()
