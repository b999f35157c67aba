"""Pure functions from what inspection answers to lines and tables; tested without a terminal."""
