// Command standins writes a folder as `make payload` does, with stand-ins that run under Wine and answer the probes of the
// services that render creates:
//
//	standins FOLDER SERVICE.EXE KUBE-LOG-RUNNER.EXE WMCO-NODE.EXE VERSION
//
// SERVICE.EXE is internal/winnode/stub/service. The other two are real. VERSION is that of the node agent.
//
// Exit status: 0 done; 1 the folder could not be written.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/internal/winnode/stub"
	"wmco/payload"
	"wmco/payload/store"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "standins:", err)
		os.Exit(1)
	}
}

// behaviours are those of stand-ins that do more than run. This kubelet does not start with "maxPods: 64".
var behaviours = map[string]stub.Behaviour{
	payload.Kubelet:    {HTTP: []string{"127.0.0.1:10248"}, Config: `C:\k\kubelet.conf`, Bad: "maxPods: 64"},
	payload.KubeProxy:  {HTTP: []string{"127.0.0.1:10256"}, Config: `C:\k\kube-proxy.conf`},
	payload.Containerd: {Pipes: []string{`\\.\pipe\containerd-containerd`}, Config: `C:\k\containerd\containerd_conf.toml`},
	payload.CSIProxy:   {Pipes: []string{`\\.\pipe\csi-proxy-filesystem-v1`}},
	payload.Exporter:   {TCP: []string{"127.0.0.1:9182"}, Config: `C:\k\tls\windows-exporter-webconfig.yaml`},
}

// writer writes one folder.
type writer struct {
	folder, version string
	service         []byte
	// real are the executables that are not stand-ins, by name.
	real map[string][]byte
	list store.List
}

func run(args []string) error {
	if len(args) != 5 {
		return errors.New("usage: standins FOLDER SERVICE.EXE KUBE-LOG-RUNNER.EXE WMCO-NODE.EXE VERSION")
	}
	w := writer{folder: args[0], version: args[4], real: map[string][]byte{}, list: store.List{Schema: store.Schema}}
	var err error
	if w.service, err = os.ReadFile(args[1]); err != nil {
		return err
	}
	for name, path := range map[string]string{payload.KubeLogRunner: args[2], payload.Agent: args[3]} {
		if w.real[name], err = os.ReadFile(path); err != nil {
			return err
		}
	}
	for _, e := range payload.Table() {
		if err := w.write(e); err != nil {
			return fmt.Errorf("writing %s: %w", e.Name, err)
		}
	}
	list, err := w.list.Encode()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(w.folder, store.ListFile), list, 0o644)
}

func (w *writer) write(x payload.Executable) error {
	raw, err := w.executable(x.Name)
	if err != nil {
		return err
	}
	e := store.Entry{
		Name: x.Name, Path: x.Path, Module: x.Module, Version: x.Version, Go: runtime.Version(),
		Raw: blob(raw),
	}
	if x.Name == payload.Agent {
		e.Path, e.Version = payload.AgentPath(e.Raw.Digest), w.version
	}
	stored := archive.Compress(raw)
	e.Stored = blob(stored)
	w.list.Executables = append(w.list.Executables, e)
	return os.WriteFile(filepath.Join(w.folder, e.File()), stored, 0o644)
}

// executable returns the real executable or a stand-in, which differs from all others.
func (w *writer) executable(name string) ([]byte, error) {
	if program, ok := w.real[name]; ok {
		return program, nil
	}
	b := behaviours[name]
	b.Version = name
	return stub.Attach(w.service, b)
}

func blob(data []byte) store.Blob {
	return store.Blob{Digest: bundle.Of(data), Size: int64(len(data))}
}
