package nodecli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"wmco/applier"
	"wmco/applier/collect"
	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/layout"
)

const (
	kubeletService = layout.Kubelet
	// maxKubeconfig is how many bytes of a kubeconfig, or of a file with CAs, are read.
	maxKubeconfig = 1 << 20
)

// kubeconfigs are the files that say which cluster a kubelet belongs to. The kubelet writes the first one when it has
// its certificate, and asks for that with the second one (k8s.io/kubernetes/pkg/kubelet/certificate/bootstrap). The
// paths are those of the existing operator, where the command of the service names no others.
var kubeconfigs = []struct {
	flag *regexp.Regexp
	path string
}{
	{regexp.MustCompile(`--kubeconfig(?:=|\s+)(?:"([^"]+)"|([^\s"]+))`), `C:\k\kubeconfig`},
	{regexp.MustCompile(`--bootstrap-kubeconfig(?:=|\s+)(?:"([^"]+)"|([^\s"]+))`), `C:\k\bootstrap-kubeconfig`},
}

// hostFacts returns the facts of a host, with those of its kubelet.
func hostFacts(ctx context.Context, host applier.Host) (bundle.Facts, error) {
	facts, err := host.Facts(ctx)
	if err != nil {
		return bundle.Facts{}, err
	}
	if facts.Kubelet, err = kubeletOf(ctx, host); err != nil {
		return bundle.Facts{}, fmt.Errorf("reading the cluster of the kubelet: %w", err)
	}
	return facts, nil
}

// kubeletOf returns the configuration of the service kubelet. A damaged file is ignored; one that cannot be
// read is an error, as it may name another cluster.
func kubeletOf(ctx context.Context, host applier.Host) (bundle.Kubelet, error) {
	states, err := host.Services(ctx, []string{kubeletService})
	if err != nil {
		return bundle.Kubelet{}, err
	}
	if states[0].Status == plan.ServiceAbsent {
		return bundle.Kubelet{}, nil
	}
	k := bundle.Kubelet{Program: collect.ProgramOf(states[0].CommandLine)}
	for _, file := range kubeconfigs {
		cluster, err := readCluster(ctx, host, pathOfFlag(states[0].CommandLine, file.flag, file.path))
		if err != nil {
			return bundle.Kubelet{}, err
		}
		if cluster == nil || cluster.Server == "" {
			continue
		}
		k.Server = cluster.Server
		cas := cluster.CertificateAuthorityData
		if len(cas) == 0 && cluster.CertificateAuthority != "" {
			if cas, err = readFile(ctx, host, cluster.CertificateAuthority); err != nil {
				return bundle.Kubelet{}, err
			}
		}
		k.CAs = bundle.CertificateDigests(cas)
		return k, nil
	}
	return k, nil
}

// pathOfFlag returns the value of a flag in a command, otherwise the default.
func pathOfFlag(command string, flag *regexp.Regexp, standard string) string {
	found := flag.FindStringSubmatch(command)
	if found == nil {
		return standard
	}
	return found[1] + found[2]
}

// readCluster returns the cluster of the current context of a kubeconfig; nil where there is none.
func readCluster(ctx context.Context, host applier.Host, path string) (*api.Cluster, error) {
	text, err := readFile(ctx, host, path)
	if err != nil || len(text) == 0 {
		return nil, err
	}
	config, err := clientcmd.Load(text)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // the error may quote the file, and the kubelet cannot read it either
	}
	current, ok := config.Contexts[config.CurrentContext]
	if !ok {
		return nil, nil //nolint:nilnil // as above
	}
	return config.Clusters[current.Cluster], nil
}

// readFile returns the beginning of a file of the host; nothing where it does not exist, or its path is none that is
// read.
func readFile(ctx context.Context, host applier.Host, path string) ([]byte, error) {
	if bundle.CheckPath(path) != nil {
		return nil, nil
	}
	file, err := host.Open(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(file, maxKubeconfig))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return text, nil
}
