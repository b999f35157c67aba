"""The in-process driver, for the tests of applications."""
