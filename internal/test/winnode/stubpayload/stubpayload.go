// Package stubpayload writes a folder as `make payload` does, with stand-ins that run under Wine and answer the probes
// of the services that render creates. wmco-node and kube-log-runner are real.
package stubpayload

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/internal/test/winnode/stub"
	"wmco/payload"
	"wmco/payload/store"
)

// Programs are the executables that a folder is made of.
type Programs struct {
	// Service is internal/test/winnode/stub/service, of which the stand-ins are copies.
	Service []byte
	// Runner is kube-log-runner, Agent is wmco-node with this version.
	Runner, Agent []byte
	Version       string
	// Built are executables that are used as they are, by their names.
	Built map[string][]byte
	// KubeletPrints makes the kubelet print 200 kB a second.
	KubeletPrints bool
	// AgentEnds is for a program that ends at once in place of the agent.
	AgentEnds bool
}

// behaviours are those of stand-ins that do more than run. This kubelet does not start with "maxPods: 64".
func behaviours() map[string]stub.Behaviour {
	return map[string]stub.Behaviour{
		payload.Kubelet:    {HTTP: []string{"127.0.0.1:10248"}, Config: `C:\k\kubelet.conf`, Bad: "maxPods: 64"},
		payload.KubeProxy:  {HTTP: []string{"127.0.0.1:10256"}, Config: `C:\k\kube-proxy.conf`},
		payload.Containerd: {Pipes: []string{`\\.\pipe\containerd-containerd`}, Config: `C:\k\containerd\containerd_conf.toml`},
		payload.CSIProxy:   {Pipes: []string{`\\.\pipe\csi-proxy-filesystem-v1`}},
		payload.Exporter:   {TCP: []string{"127.0.0.1:9182"}, Config: `C:\k\tls\windows-exporter-webconfig.yaml`},
	}
}

// Write writes into a folder that exists.
func Write(folder string, p Programs) error {
	list := store.List{Schema: store.Schema}
	for _, x := range payload.ProgramsFor(payload.TestedKubernetes) {
		raw, err := p.executable(x.Program)
		if err != nil {
			return fmt.Errorf("making the stand-in for %s: %w", x.Name, err)
		}
		stored := archive.Compress(raw)
		e := store.Entry{
			Name: x.Name, Path: x.Path, Module: x.Module, Version: x.Version, Go: runtime.Version(), Raw: blobOf(raw),
			Stored: blobOf(stored),
		}
		if x.Name == payload.Agent {
			e.Path, e.Version = payload.AgentPath(e.Raw.Digest), p.Version
		}
		list.Executables = append(list.Executables, e)
		if err := os.WriteFile(filepath.Join(folder, e.File()), stored, 0o644); err != nil {
			return err
		}
	}
	text, err := list.Encode()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, store.ListFile), text, 0o644)
}

// executable returns the real executable or a stand-in, which differs from all others.
func (p Programs) executable(name string) ([]byte, error) {
	built, ok := p.Built[name]
	switch {
	case name == payload.Agent && p.AgentEnds:
		return stub.AttachBehaviour(p.Service, stub.Behaviour{Version: name, Config: `C:\k\missing`})
	case name == payload.Agent:
		return p.Agent, nil
	case ok:
		return built, nil
	case name == payload.KubeLogRunner:
		return p.Runner, nil
	}
	b := behaviours()[name]
	b.Version = name
	if name == payload.Kubelet && p.KubeletPrints {
		b.LogBytes, b.LogMilliseconds = 10000, 50
	}
	return stub.AttachBehaviour(p.Service, b)
}

func blobOf(data []byte) store.Blob {
	return store.Blob{Digest: bundle.Of(data), Size: int64(len(data))}
}
