"""`kadcrawl doctor` looks for problems that keep a peer from working on this machine, and gives advice.

`check_result` is the result of a check. Decisions turn facts into such results: `libraries`, `machine`, `reach`. Probes
gather the facts: `machine_probes` reads the system and tries the disk, `helper_probes` looks for compiled parts of
libraries, `directory_probes` reads the directory of a peer and the key, and `network_probes` tries addresses, other
peers and a site. `checkup` is the list of checks with their time limits. No probe makes a directory or shows a secret.
"""
