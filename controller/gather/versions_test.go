package gather

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/controller/gather/objects"
	"wmco/render"
)

// TestKubeletUnitsOfEachVersion: the machine-config-operator's templates for workers (templates/worker/01-worker-kubelet) have had these flags.
// Windows nodes share one of them. A kubelet stops at a flag that it does not know, and 1.35 does not know --pod-infra-container-image.
func TestKubeletUnitsOfEachVersion(t *testing.T) {
	const always = "kubelet --config=/etc/kubernetes/kubelet.conf --container-runtime-endpoint=/var/run/crio/crio.sock --node-ip=${KUBELET_NODE_IP} " +
		"--minimum-container-ttl-duration=6m0s --cloud-provider=external --hostname-override=${KUBELET_NODE_NAME} --provider-id=${KUBELET_PROVIDERID} "
	for version, also := range map[string]string{
		"4.18 to 4.20": "--pod-infra-container-image=quay.io/example/pause@sha256:1 --system-reserved=cpu=${CPU},memory=${MEMORY}",
		"4.21":         "--config-dir=/etc/openshift/kubelet.conf.d --pod-infra-container-image=quay.io/example/pause@sha256:1 --system-reserved=cpu=${CPU}",
		"4.22":         "--config-dir=/etc/openshift/kubelet.conf.d --system-reserved=cpu=${CPU}",
		"5.0 and 5.1":  "--config-dir=/etc/openshift/kubelet.conf.d",
	} {
		command, err := execStart([]string{"[Service]\nExecStart=" + always + also + " --v=2\n"})
		if diff := cmp.Diff(map[string]string{"cloud-provider": "external"}, parseNamedFlags(command, sharedKubeletFlags())); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", version, err, diff)
		}
	}
}

// TestFieldsThatOneVersionHas are ignored, and cause no finding: the objects of all versions are read alike.
func TestFieldsThatOneVersionHas(t *testing.T) {
	const profile = `"tlsSecurityProfile":{"type":"Modern","modern":{}}`
	server := func(also string) objects.Object {
		return object(groupConfig, "APIServer", "", clusterName, `{"spec":{`+profile+also+`}}`)
	}
	pool := func(also string) objects.Object {
		return object(groupMachineConfig, "MachineConfigPool", "", workerPool, `{"spec":{"paused":true`+also+`},"status":{"configuration":{"name":"rendered-worker-1"}}}`)
	}
	controllerConfig := func(spec, status string) objects.Object {
		return object(groupMachineConfig, "ControllerConfig", "", controllerConfigName, `{"spec":{"kubeAPIServerServingCAData":"Q0E="`+spec+`},"status":{"observedGeneration":3`+status+`}}`)
	}
	config := func(ignition string) objects.Object {
		return object(groupMachineConfig, "MachineConfig", "", "rendered-worker-1", `{"metadata":{"name":"rendered-worker-1","annotations":{"machineconfiguration.openshift.io/release-image-version":"4.18.30"}},"spec":{"config":{"ignition":{"version":"`+ignition+`"}}}}`)
	}
	want := gatherFrom(t, Options{}, server(""), pool(""), controllerConfig("", ""), config("3.5.0"))
	if want.Cluster.TLS.MinVersion != "VersionTLS13" || want.Cluster.Pool != (render.WorkerPool{Paused: true, Release: "4.18.30"}) || want.Cluster.KubeletClientCA == "" {
		t.Fatalf("%+v", want.Cluster)
	}
	for what, list := range map[string]given{
		"Ignition of 4.18":                               {server(""), pool(""), controllerConfig("", ""), config("3.4.0")},
		"certificates in the status since 4.13":          {server(""), pool(""), controllerConfig("", `,"controllerCertificates":[{"bundleFile":"KubeAPIServerServingCAData","signer":"s","subject":"s"}]`), config("3.5.0")},
		"streams of OS images since 4.21":                {server(""), pool(`,"osImageStream":{"name":"rhel-9"}`), controllerConfig("", ""), config("3.5.0")},
		"BGP since 5.0":                                  {server(""), pool(""), controllerConfig(`,"bgpVIPPeersJSON":"[]"`, ""), config("3.5.0")},
		"adherence to the TLS profile, where it is kept": {server(`,"tlsAdherence":"LegacyAdheringComponentsOnly"`), pool(""), controllerConfig("", ""), config("3.5.0")},
		"adherence to the TLS profile by all":            {server(`,"tlsAdherence":"StrictAllComponents"`), pool(""), controllerConfig("", ""), config("3.5.0")},
		"adherence to the TLS profile, a later value":    {server(`,"tlsAdherence":"Later"`), pool(""), controllerConfig("", ""), config("3.5.0")},
	} {
		got := gatherFrom(t, Options{}, list...)
		if diff := cmp.Diff(reasons(want.Findings), reasons(got.Findings)); diff != "" {
			t.Errorf("%s: findings (-want +got):\n%s", what, diff)
		}
		if got.Cluster.TLS.MinVersion != want.Cluster.TLS.MinVersion || got.Cluster.Pool != want.Cluster.Pool || got.Cluster.KubeletClientCA != want.Cluster.KubeletClientCA {
			t.Errorf("%s: %+v", what, got.Cluster)
		}
	}
}
