"""Publishing what enqueues staged in another database."""
