"""Configuration, job files, limits: checked values, no behavior."""
