package fleettest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/published"
)

// checkOutage: without the API server, nodes restore what they have from their own store. Afterwards they follow again.
func (f *fleet) checkOutage(t *testing.T) {
	const file, service = registries + `quay.io\hosts.toml`, "csi-proxy"
	r := f.read(t)
	want := f.machines[0].Text(file)
	must(t, f.plane.StopAPIServer())
	for _, m := range f.machines {
		must(t, m.WriteFile(t.Context(), file, bundle.AccessAdmins, []byte("something else")))
		must(t, m.StopService(t.Context(), service))
		// The agent begins anew without knowing its Node: it compares at once.
		must(t, m.StopService(t.Context(), bundle.AgentService))
		must(t, m.StartService(t.Context(), bundle.AgentService))
	}
	eventually(t, "nodes that have restored what differed", func() bool {
		for _, m := range f.machines {
			if m.Text(file) != want || m.Status(service) != plan.ServiceRunning {
				return false
			}
		}
		return true
	})
	must(t, f.plane.StartAPIServer())
	back := time.Now()
	f.put(t, `{apiVersion: config.openshift.io/v1, kind: ImageDigestMirrorSet, metadata: {name: afterwards},
  spec: {imageDigestMirrors: [{source: docker.io/library, mirrors: ["mirror.example.com:5000/library"]}]}}`)
	f.followed(t, r)
	t.Logf("%.1f s from the start of the API server to the last of %d reports; the operator ended %d times", time.Since(back).Seconds(), size, f.ended.Load())
	f.rest(t)
	for _, m := range f.machines {
		hasText(registries+`docker.io\hosts.toml`, "mirror.example.com:5000")(t, f, m)
		report, err := published.DecodeReport(f.node(t, m.name).Annotations[published.ReportAnnotation])
		must(t, err)
		if report.Repaired != 2 {
			t.Errorf("%s reports %d repairs", m.name, report.Repaired)
		}
		got := m.since(t, r.machines[m.name])
		if got.Boots != 0 || got.Logins != 0 || got.Starts[service] != 1 || got.Starts["kubelet"] != 0 || got.Starts["containerd"] != 0 {
			t.Errorf("%s: %+v", m.name, got)
		}
	}
}

// checkLateStart: an operator that cannot reach the API server ends, is started again, and publishes when it is there.
func (f *fleet) checkLateStart(t *testing.T) {
	f.stop()
	r, before := f.read(t), f.ended.Load()
	must(t, f.plane.StopAPIServer())
	f.operate(t, nil)
	eventually(t, "the end of the operator", func() bool { return f.ended.Load() > before })
	must(t, f.plane.StartAPIServer())
	f.put(t, `{apiVersion: config.openshift.io/v1, kind: ImageDigestMirrorSet, metadata: {name: late},
  spec: {imageDigestMirrors: [{source: ghcr.io/example, mirrors: ["mirror.example.com:5000/late/example"]}]}}`)
	f.followed(t, r)
	f.rest(t)
	for _, m := range f.machines {
		want := nodeEffects{Files: []string{`make ` + registries + `ghcr.io`, `write ` + registries + `ghcr.io\hosts.toml`}}
		if diff := cmp.Diff(want, m.since(t, r.machines[m.name]), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", m.name, diff)
		}
	}
}
