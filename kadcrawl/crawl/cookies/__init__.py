"""Cookies: `jar` decides which cookies of a site are kept and sent, and `site_cookies` keeps the jars in the store.
`sessions` decides when to log in at a site, and `log_in` sends the form."""
