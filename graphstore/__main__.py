"""`python -m graphstore`: the same as the `graphstore` command."""

from graphstore.cli.command_line import main

if __name__ == "__main__":
    main()
