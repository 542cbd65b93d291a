"""All that a server or a page can do to a crawler, as tables: each row has one recorded outcome, and a bound."""
