"""`python -m learnable` is the same as `learnable`."""

from .cli.app import main

if __name__ == "__main__":
    main()
