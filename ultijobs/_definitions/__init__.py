"""What an application declares: jobs, tasks, backfills and bounds. Pure values, checked where they are written."""
