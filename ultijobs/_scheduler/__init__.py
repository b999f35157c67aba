"""When jobs are asked for by the calendar, by one process of the fleet at a time."""
