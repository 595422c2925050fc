"""`python -m hoodie`: the same as the command `hoodie`."""

from hoodie.cli import main

if __name__ == "__main__":
    main()
