"""`python -m learnable` is the same as `learnable`: the tool, or a line that says how to install it."""

from typing import NoReturn


def main() -> NoReturn:
    """Run the tool."""
    try:
        from .cli.app import main as run
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        raise SystemExit("learnable: the command-line tool needs its extra: pip install 'learnable[cli]'") from None
    run()


if __name__ == "__main__":
    main()
