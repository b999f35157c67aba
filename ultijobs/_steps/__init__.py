"""What a handler sees: steps that replay, and the context of its attempt."""
