"""`python -m graphstore`: the same as the `graphstore` command."""

from graphstore.cli.quick import main

if __name__ == "__main__":
    main()
