"""Cookies: `jar` decides which cookies of a site are kept and sent, and `site_cookies` keeps the jars in the store."""
