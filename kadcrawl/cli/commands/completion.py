"""`kadcrawl completion` prints the script by which a shell completes this command. The scripts are click's.

A shell asks the command itself for each completion, so a script stays valid when options change.
"""

import click
import cloup
from click.shell_completion import get_completion_class

from kadcrawl.cli.exits import DONE, told

PROGRAM = "kadcrawl"
SHELLS = ("bash", "zsh", "fish")


@cloup.command(short_help="Print a script that lets your shell complete commands.")
@cloup.argument("shell", type=click.Choice(SHELLS))
@told
def completion(shell: str) -> int:
    """Print a script that lets your shell complete commands, options, choices and file names.

    \b
    For the running shell:
        bash   source <(kadcrawl completion bash)
        zsh    source <(kadcrawl completion zsh)
        fish   kadcrawl completion fish | source

    \b
    For each new shell:
        bash   echo 'source <(kadcrawl completion bash)' >> ~/.bashrc
        zsh    echo 'source <(kadcrawl completion zsh)' >> ~/.zshrc
        fish   kadcrawl completion fish > ~/.config/fish/completions/kadcrawl.fish

    bash must be 4.4 or newer. zsh must have run compinit before.
    """
    root = click.get_current_context().find_root().command
    known = get_completion_class(shell)
    assert known is not None, "click knows these shells"
    click.echo(known(root, {}, PROGRAM, f"_{PROGRAM.upper()}_COMPLETE").source())
    return DONE
