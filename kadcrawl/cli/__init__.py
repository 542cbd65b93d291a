"""The command `kadcrawl`: a person's way in.

`app` has the commands, `options` what they share, `live` runs one peer in this process, `local` a whole swarm of
processes on this machine (`child` in each, `pipe` between them), `control` talks to a running peer, `progress` shows,
`summary` adds up, `run` has the loop and its signals. Nothing here decides anything about the crawl.
"""


def main() -> None:
    """Run the command."""
    from kadcrawl.cli.app import main as command  # Not at the top: the peer processes of a swarm do without it.

    command()


__all__ = ["main"]
