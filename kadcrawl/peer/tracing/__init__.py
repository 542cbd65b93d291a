"""Tracing: the way of a URL over peers as one trace of OpenTelemetry, if `Config.traces` is set.

`trace_ids` derives the IDs of a trace from the key of its URL, so no message carries them and all peers agree on what
is shown. `otel_traces` records the steps of this peer, and a thread of the library sends them to the collector. Only
`otel_traces` imports the library, which the extra `traces` installs, and `open_resources` imports it on demand.
"""
