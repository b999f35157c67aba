"""What every role shares that runs until it is told to stop: the request to stop, patience, one line per outage."""
