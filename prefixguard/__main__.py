"""`python -m prefixguard`."""

from prefixguard.cli import main

main()
