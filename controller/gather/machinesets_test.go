package gather

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/controller/gather/objects"
	"wmco/render/machines"
)

func TestWorkerMachineSets(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want machines.Cluster
	}{
		"nothing of use": {"kind: Node\napiVersion: v1\n", machines.Cluster{}},
		"Nutanix": {`
kind: Infrastructure
apiVersion: config.openshift.io/v1
metadata: {name: cluster}
spec:
  platformSpec:
    type: Nutanix
    nutanix:
      failureDomains:
      - name: a
        cluster: {type: UUID, uuid: u-1}
        subnets: [{type: Name, name: vlan-7}]
status: {infrastructureName: example-7k2vd, platformStatus: {type: Nutanix}}
`, machines.Cluster{Platform: bundle.PlatformNutanix, InfrastructureName: "example-7k2vd", FailureDomains: []machines.FailureDomain{
			{Name: "a", Element: machines.Identifier{UUID: "u-1"}, Subnets: []machines.Identifier{{Name: "vlan-7"}}},
		}}},
		"the copy of Infrastructure, and a MachineSet beside one of another namespace": {`
kind: ControllerConfig
apiVersion: machineconfiguration.openshift.io/v1
metadata: {name: machine-config-controller}
spec: {infra: {status: {infrastructureName: x, platformStatus: {type: Azure, azure: {resourceGroupName: rg}}}}}
---
kind: MachineSet
apiVersion: machine.openshift.io/v1beta1
metadata: {name: a, namespace: openshift-machine-api}
---
kind: MachineSet
apiVersion: machine.openshift.io/v1beta1
metadata: {name: b, namespace: default}
`, machines.Cluster{
			Platform: bundle.PlatformAzure, InfrastructureName: "x", ResourceGroup: "rg", NetworkResourceGroup: "rg",
			Sets: []machines.Source{{
				Ref:  bundle.Ref{Group: "machine.openshift.io", Kind: "MachineSet", Namespace: "openshift-machine-api", Name: "a", Source: "-", Line: 7},
				JSON: []byte(`{"apiVersion":"machine.openshift.io/v1beta1","kind":"MachineSet","metadata":{"name":"a","namespace":"openshift-machine-api"}}`),
			}},
		}},
	} {
		got, findings, err := WorkerMachineSets(t.Context(), objects.NewPathsReader([]string{"-"}, strings.NewReader(c.text)))
		if err != nil || findings.Refused() {
			t.Errorf("%s: %v %+v", name, err, findings)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
