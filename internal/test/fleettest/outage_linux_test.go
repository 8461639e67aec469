package fleettest

import (
	"testing"
	"time"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/published"
)

// checkOutage: without the API server, nodes restore what they have from their own store, and the operator ends, because it cannot renew its
// lease; the next one cannot start. Afterwards nodes follow again.
func (f *fleet) checkOutage(t *testing.T) {
	const file, service = registries + `quay.io\hosts.toml`, "csi-proxy"
	r, ended := f.read(t), f.ended.Load()
	want := f.machines[0].Text(file)
	must(t, f.plane.StopAPIServer())
	for _, m := range f.machines {
		must(t, m.WriteFile(t.Context(), file, bundle.AccessAdmins, []byte("something else")))
		must(t, m.StopService(t.Context(), service))
		// The agent starts again without knowing its Node, which may be paused: it waits ten seconds for it.
		must(t, m.StopService(t.Context(), bundle.AgentService))
		must(t, m.StartService(t.Context(), bundle.AgentService))
	}
	eventually(t, "the end of the operator, and of the next one", func() bool { return f.ended.Load() >= ended+2 })
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
	t.Logf("%.1f s from the start of the API server to the last of %d reports; the operator ended %d times", time.Since(back).Seconds(), size, f.ended.Load()-ended)
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
