package existing

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/simnode"
	"wmco/internal/test/simnode/overlay"
)

// FurnishHost leaves on the host of a joined node, whose operator has ended, what the generation leaves: its files, services and
// variables.
func (f Furnishing) FurnishHost(ctx context.Context, m *simnode.Machine, node *corev1.Node) error {
	if err := m.StopService(ctx, bundle.AgentService); err != nil {
		return err
	}
	all, err := m.Snapshot(ctx)
	if err != nil {
		return err
	}
	absent := map[string]bool{}
	for _, x := range f.Absent {
		absent[strings.ToLower(x.Name)] = true
	}
	for path, file := range all.Files {
		if (isOurs(path) && !f.Back || absent[strings.ToLower(path)]) && file.Kind == plan.FileRegular {
			if err := m.RemoveFile(path); err != nil {
				return err
			}
		}
	}
	for _, x := range f.Files {
		if err := m.WriteFile(ctx, x.Name, bundle.AccessUsers, []byte(x.Text)); err != nil {
			return err
		}
	}
	values := strings.NewReplacer("NODE_NAME", node.Name, "NODE_SUBNET", node.Annotations[overlay.SubnetAnnotation], "ENDPOINT_IP", "10.132.0.3")
	if err := m.Edit(ctx, func(s *simulation.State) {
		for key, service := range s.Services {
			if command := f.Command(service.Name); command != "" {
				service.CommandLine = values.Replace(command)
			}
			service.Environment = nil // pkg/daemon/envvar/envvar.go:32: it sets the variables of the machine
			s.Services[key] = service
		}
		s.Put(plan.Setting{Kind: bundle.KindVariable, Name: "NO_PROXY", Value: ".existing.example.com", Present: true})
	}); err != nil {
		return err
	}
	return m.StartService(ctx, bundle.AgentService)
}

// HasAgent reports whether the service of the existing agent runs on a host as its operator has left it.
func (f Furnishing) HasAgent(ctx context.Context, m *simnode.Machine) (bool, error) {
	all, err := m.Services(ctx, []string{bundle.AgentService})
	return err == nil && all[0].CommandLine == f.Command(bundle.AgentService) && all[0].Status == plan.ServiceRunning, err
}

// isOurs reports whether a file is one of this operator alone.
func isOurs(path string) bool {
	p := strings.ToLower(path)
	return strings.HasPrefix(p, strings.ToLower(plan.StateFolder)+`\`) || strings.HasPrefix(p, `c:\windows\wmco\`) || strings.HasPrefix(p, `c:\k\agent\`) || strings.HasSuffix(p, bundle.LedgerCopy)
}

// NodePatch returns the change that leaves the annotations of the generation on a Node.
func (f Furnishing) NodePatch(node *corev1.Node) (client.Patch, error) {
	kept := map[string]bool{}
	for _, a := range f.Annotations {
		kept[a.Name] = true
	}
	values := map[string]any{}
	for key := range node.Annotations {
		if !f.Back && strings.HasPrefix(key, published.Domain) && !kept[key] {
			values[key] = nil
		}
	}
	values[published.VersionAnnotation], values[published.DesiredVersionAnnotation] = f.Version, f.Version
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": values}})
	if err != nil {
		return nil, fmt.Errorf("annotating a Node: %w", err)
	}
	return client.RawPatch(types.MergePatchType, text), nil
}
