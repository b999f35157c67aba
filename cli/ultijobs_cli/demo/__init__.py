"""The demo: an application that audits the Python distributions installed in its own environment."""
