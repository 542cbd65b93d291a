"""The dashboard in a headless Chromium, for the tests and for the benchmark of its frames.

`chromium.py` drives the browser, `driver.mjs` is its part in Node. `replay.py` serves a recording of a simulated swarm
(sim/dashboard_recording.py), and `frames.py` counts and measures what each change of it costs the page.
"""
