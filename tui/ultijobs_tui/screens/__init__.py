"""One module per screen: what it asks for, how it shows it, what its keys are for."""
