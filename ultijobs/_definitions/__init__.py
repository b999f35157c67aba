"""What an application declares: jobs, tasks, backfills. Pure values, no I/O."""
