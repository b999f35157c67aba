"""What each command does. A body takes an `Invocation` and its own options, and answers with a `Report`."""
