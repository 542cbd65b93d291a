"""The subcommands that are more than a screen of code."""
