"""Test the manifests: they are valid, fit each other, and stop a peer in the way that loses nothing."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from kadcrawl.cli.app import main
from kadcrawl.peer.monitoring.listener import PATHS
from kadcrawl.settings.config import METRICS_PORT_DEFAULT

DIRECTORY = Path(__file__).parents[2] / "deploy" / "kubernetes"
KUBERNETES = "1.33"
LABELS = {"app.kubernetes.io/name": "kadcrawl"}
LEAVE_S = 360
"""The longest that a peer may take to leave: docs/how-to/operate.md."""


def manifest(name: str) -> Any:
    return yaml.safe_load((DIRECTORY / f"{name}.yaml").read_text())


POD = manifest("statefulset")["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]


@pytest.mark.parametrize("name", ["statefulset", "service", "disruption", "network"])
def test_each_manifest_is_valid_without_unknown_fields(name: str) -> None:
    kubernetes_validate.validate(manifest(name), KUBERNETES, strict=True)


def test_a_manifest_with_a_wrong_field_is_found() -> None:
    wrong = manifest("statefulset")
    wrong["spec"]["replicaz"] = 3
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, KUBERNETES, strict=True)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl, whose kustomize works without a cluster")
def test_kustomize_makes_them_all() -> None:
    run = subprocess.run(["kubectl", "kustomize", DIRECTORY], capture_output=True, text=True)
    assert 0 == run.returncode, run.stderr
    made = list(yaml.safe_load_all(run.stdout))
    for one in made:
        kubernetes_validate.validate(one, KUBERNETES, strict=True)
    kinds = sorted(one["kind"] for one in made)
    assert ["ConfigMap", "ConfigMap", "NetworkPolicy", "PodDisruptionBudget", "Service", "StatefulSet"] == kinds
    names = {one["metadata"]["name"] for one in made if one["kind"] == "ConfigMap"}
    (stateful,) = (one for one in made if one["kind"] == "StatefulSet")
    mounted = {volume["configMap"]["name"] for volume in stateful["spec"]["template"]["spec"]["volumes"][1:]}
    assert names == mounted, "each has a hash, so that a changed job restarts the pods"


def test_all_speak_of_the_same_pods() -> None:
    stateful, budget, network = manifest("statefulset"), manifest("disruption"), manifest("network")
    assert LABELS == stateful["spec"]["template"]["metadata"]["labels"] == manifest("service")["spec"]["selector"]
    for selector in (stateful["spec"]["selector"], budget["spec"]["selector"], network["spec"]["podSelector"]):
        assert {"matchLabels": LABELS} == selector
    assert manifest("service")["metadata"]["name"] == stateful["spec"]["serviceName"]


def test_the_service_names_peers_before_they_are_ready_by_both_protocols() -> None:
    service = manifest("service")["spec"]
    assert ("None", True) == (service["clusterIP"], service["publishNotReadyAddresses"])
    assert {("TCP", 4160), ("UDP", 4160)} == {(port["protocol"], port["port"]) for port in service["ports"]}


def test_a_pod_that_goes_leaves_first_and_one_at_a_time() -> None:
    assert ["kadcrawl", "leave"] == CONTAINER["lifecycle"]["preStop"]["exec"]["command"]
    assert POD["terminationGracePeriodSeconds"] > LEAVE_S
    assert 1 == manifest("disruption")["spec"]["maxUnavailable"]


@pytest.mark.parametrize(
    ("probe", "path"), [("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")]
)
def test_the_probes_ask_what_a_peer_answers(probe: str, path: str) -> None:
    assert path in PATHS
    assert {"path": path, "port": "metrics"} == CONTAINER[probe]["httpGet"]
    (port,) = (port["containerPort"] for port in CONTAINER["ports"] if port["name"] == "metrics")
    (metrics,) = (variable["value"] for variable in CONTAINER["env"] if variable["name"] == "KADCRAWL_METRICS")
    assert f"0.0.0.0:{port}" == metrics
    assert METRICS_PORT_DEFAULT == port


def test_a_pod_has_no_rights_and_writes_nowhere_but_its_volumes() -> None:
    assert {"drop": ["ALL"]} == CONTAINER["securityContext"]["capabilities"]
    assert CONTAINER["securityContext"]["readOnlyRootFilesystem"]
    assert POD["securityContext"]["runAsNonRoot"]
    assert not POD["automountServiceAccountToken"]


def test_its_variables_are_options_and_the_key_is_a_secret() -> None:
    variables = {variable["name"]: variable for variable in CONTAINER["env"]}
    options = {parameter.opts[0] for parameter in main.commands["start"].params}
    names = set(variables) - {"POD_NAME", "KADCRAWL_KEY"}
    assert {name.replace("KADCRAWL_", "--").replace("_", "-").lower() for name in names} <= options
    assert {"name": "kadcrawl-key", "key": "key"} == variables["KADCRAWL_KEY"]["valueFrom"]["secretKeyRef"]


@pytest.mark.parametrize(("pod", "verb"), [("kadcrawl-0", "start"), ("kadcrawl-1", "join"), ("kadcrawl-10", "join")])
def test_the_first_pod_starts_and_the_others_join(pod: str, verb: str, tmp_path: Path) -> None:
    fake = tmp_path / "kadcrawl"
    fake.write_text('#!/bin/sh\necho "$@"\n')
    fake.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "POD_NAME": pod}
    run = subprocess.run(["sh", DIRECTORY / "entry.sh", "--more"], env=environment, capture_output=True, text=True)
    assert (0, verb) == (run.returncode, run.stdout.split()[0])
    assert "--more" == run.stdout.split()[-1]
