"""The queue's contract: values, states and the driver protocol. It knows no driver and no handler."""
