"""``python -m fuzz.child``: the process in which atheris fuzzes one target. Started by `campaign`."""

import sys
from pathlib import Path

import atheris

TIMEOUT_S = 60
"""Wall-clock seconds after which libFuzzer ends the process and writes the input: a hang, or a machine too busy."""
RSS_MOST_MB = 1024


def main(name: str, directory: str, crashes: str, report: str, seconds: str, runs: str, *others: str) -> None:
    """Fuzz until the time or the runs are over. Interesting inputs go to `directory`, and `others` have more of
    them."""
    with atheris.instrument_imports(include=["kadcrawl"]):
        from fuzz.targets import target
        from fuzz.watch import Watch

        found = target(name)
    watch = Watch(found, Path(crashes), Path(report))
    options = {
        "max_total_time": seconds,
        "runs": runs,
        "max_len": found.bytes_max,
        "timeout": TIMEOUT_S,
        "rss_limit_mb": RSS_MOST_MB,
        "artifact_prefix": f"{crashes}/{name}-",
        "print_final_stats": 1,
        "reload": 0,
        # Inputs that take long are mutated less often, or they take all the time; of stories the long ones are wanted.
        "entropic_scale_per_exec_time": 0 if found.units else 1,
        "len_control": 0,
    }
    flags = [f"-{option}={value}" for option, value in options.items()]
    atheris.Setup([sys.argv[0], *flags, directory, *others], watch)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
