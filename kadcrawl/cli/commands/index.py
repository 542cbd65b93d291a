"""`kadcrawl index` writes the index of all WARC files of a crawl, by which replay tools find pages.

Tests: tests/cli/commands/test_index.py
"""

from pathlib import Path

import click
import cloup

from kadcrawl.cli.directory_arguments import directories_argument
from kadcrawl.cli.exits import DONE, told
from kadcrawl.errors import ConfigError


@cloup.command(short_help="Index the WARC files of a crawl for replay.")
@directories_argument
@told
def index(directories: tuple[Path, ...]) -> int:
    """Write a CDXJ index beside each WARC file in DIR... (of a crawl, or of a peer) that has none.

    A running peer does so by itself for each file that it has finished. The command also indexes the files being
    written, with the pages up to now. It may run while peers do. pywb and other replay tools read the files.
    """
    from kadcrawl.cli.targets import data_directories
    from kadcrawl.crawl.output.cdxj import WARC_SUFFIX, index_of, is_indexed, write_index
    from kadcrawl.crawl.output.outputs import WARC_DIRECTORY
    from kadcrawl.system.directory_lock import is_running

    try:
        for directory in directories:
            warcs = f"{WARC_DIRECTORY}/*{WARC_SUFFIX}"
            found = [(peer, warc) for peer in data_directories(directory) for warc in sorted(peer.glob(warcs))]
            if not found:
                raise ConfigError(f"{directory} has no WARC files: name the directory of a crawl, or of a peer")
            for peer, warc in found:
                if is_running(peer) or not is_indexed(warc):
                    for _ in write_index(warc):
                        pass
                    click.echo(f"wrote {index_of(warc)}")
    except OSError as error:
        raise ConfigError(f"cannot write an index of {error.filename or 'the files'}: {error.strerror}") from None
    return DONE
