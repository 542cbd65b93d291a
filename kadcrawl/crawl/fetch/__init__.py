"""One HTTP request, bounded in every dimension, to an address that the guard permits."""
