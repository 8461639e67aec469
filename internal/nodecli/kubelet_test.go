package nodecli

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/simulation"
)

func kubeconfig(server string) string {
	return `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"k"}}],` +
		`"clusters":[{"name":"k","cluster":{"server":"` + server + `","certificate-authority":"C:\\k\\ca.crt"}}]}`
}

// TestTheClusterOfAKubelet is that of the kubeconfig that its command names, and before it has that, of the one that it asks for a certificate with.
func TestTheClusterOfAKubelet(t *testing.T) {
	const own = `C:\k\kube-log-runner.exe -log-file=x C:\k\kubelet.exe --config=x`
	for name, tt := range map[string]struct {
		command string
		files   map[string]string
		want    string
	}{
		"no service":                       {"", map[string]string{`C:\k\kubeconfig`: kubeconfig("https://a")}, ""},
		"a kubeconfig":                     {own, map[string]string{`C:\k\kubeconfig`: kubeconfig("https://a"), `C:\k\bootstrap-kubeconfig`: kubeconfig("https://b")}, "https://a"},
		"none yet":                         {own, map[string]string{`C:\k\bootstrap-kubeconfig`: kubeconfig("https://b")}, "https://b"},
		"a damaged one":                    {own, map[string]string{`C:\k\kubeconfig`: "{{", `C:\k\bootstrap-kubeconfig`: kubeconfig("https://b")}, "https://b"},
		"without a context":                {own, map[string]string{`C:\k\kubeconfig`: `{"apiVersion":"v1","kind":"Config"}`}, ""},
		"another place":                    {own + ` --bootstrap-kubeconfig=C:\x --kubeconfig "C:\Program Files\k\conf"`, map[string]string{`C:\k\kubeconfig`: kubeconfig("https://a"), `C:\x`: kubeconfig("https://x"), `C:\Program Files\k\conf`: kubeconfig("https://y")}, "https://y"},
		"a place that is not read":         {own + ` --kubeconfig=\\server\share\conf`, nil, ""},
		"a context without that cluster":   {own, map[string]string{`C:\k\kubeconfig`: strings.Replace(kubeconfig("https://a"), `"cluster":"k"`, `"cluster":"z"`, 1)}, ""},
		"a value that is the next one's":   {own + ` --bootstrap-kubeconfig=C:\x`, map[string]string{`C:\k\kubeconfig`: kubeconfig("https://a"), `C:\x`: kubeconfig("https://x")}, "https://a"},
		"a service that another one calls": {`"C:\Program Files\nssm.exe"`, map[string]string{`C:\k\kubeconfig`: kubeconfig("https://a")}, "https://a"},
	} {
		host := hostsim.NewMemory(hostsim.Facts(), hostsim.NewClock(hostsim.Epoch()))
		for path, text := range tt.files {
			host.Plant(path, text)
		}
		if tt.command != "" {
			if err := host.Edit(t.Context(), func(s *simulation.State) {
				s.Services["kubelet"] = simulation.Service{ServiceConfig: plan.ServiceConfig{Name: "kubelet", CommandLine: tt.command}, Status: plan.ServiceStopped}
			}); err != nil {
				t.Fatal(err)
			}
		}
		f, err := hostFacts(t.Context(), host)
		if err != nil || f.Kubelet.Server != tt.want || (f.Kubelet.Program == "") != (tt.command == "") || f.HostName == "" {
			t.Errorf("%s: got %+v: %v", name, f.Kubelet, err)
		}
	}
}

// lockedHost cannot open a file.
type lockedHost struct{ applier.Host }

func (lockedHost) Open(context.Context, string) (io.ReadCloser, error) {
	return nil, errors.New("locked")
}

func (lockedHost) Services(context.Context, []string) ([]plan.ServiceState, error) {
	return []plan.ServiceState{{ServiceConfig: plan.ServiceConfig{Name: "kubelet", CommandLine: `C:\k\kubelet.exe`}, Status: plan.ServiceRunning}}, nil
}

// TestAKubeconfigThatCannotBeReadIsAnError: the host might be another cluster's.
func TestAKubeconfigThatCannotBeReadIsAnError(t *testing.T) {
	host := lockedHost{hostsim.NewMemory(hostsim.Facts(), hostsim.NewClock(hostsim.Epoch()))}
	if f, err := hostFacts(t.Context(), host); err == nil {
		t.Errorf("got %+v", f.Kubelet)
	}
	if list := bundle.CertificateDigests([]byte("no certificate")); list != nil {
		t.Errorf("got %v", list)
	}
}
