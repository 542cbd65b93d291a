"""Contacts, keys and messages of members, and both ends of a link."""
