"""Tests of the files that run peers as services, in containers, with Compose and on Kubernetes."""
