"""Tests of shared clocks."""
