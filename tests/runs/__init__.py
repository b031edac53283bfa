"""How the tests are run: the groups of ``make test``, the second look at what failed, the machine's standstills, the quick loop."""
