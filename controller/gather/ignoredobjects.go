package gather

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/controller/gather/ignored"
	"wmco/controller/gather/objects"
	"wmco/render/mirrors"
)

// reportIgnored lists settings of nodes that Windows nodes ignore. The operator does not read these objects
// here: it reports the same in its condition NodeSettingsFollowed.
func (g *gatherer) reportIgnored() {
	if g.options.Records != nil {
		return
	}
	pool := ignored.DefaultPoolLabels()
	if o, ok := g.findObject(place{groupMachineConfig, "MachineConfigPool", "", workerPool}); ok {
		if u, ok := asUnstructured(o); ok {
			pool = labels.Set(u.GetLabels())
		}
	}
	for _, k := range ignored.Kinds(g.cluster.Settings.Mirrors.Mode) {
		for _, o := range g.listObjects(k.Group, k.Kind) {
			u, ok := asUnstructured(o)
			if !ok || !k.AsksOfNodes(u, pool) {
				continue
			}
			message := "is ignored by Windows nodes: " + k.Instead
			if k.Reason == reason.ForeignLayersFetched {
				message = "has no effect for foreign layers: " + k.Instead
			}
			g.addFinding(k.Severity, k.Reason, bundle.Finding{Object: o.Ref, Message: message, Fix: k.Fix})
		}
	}
}

func asUnstructured(o objects.Object) (u unstructured.Unstructured, ok bool) {
	return u, json.Unmarshal(o.JSON, &u.Object) == nil
}

// isAboutIgnored reports whether a finding is that an object cannot be read which Windows nodes ignore in any case:
// it must not refuse the inputs. Documents that were skipped, because their kind is written in another way, stay
// findings.
func isAboutIgnored(f bundle.Finding) bool {
	return f.Severity == bundle.SeverityError &&
		f.Reason != reason.DocumentSkipped && slices.ContainsFunc(ignored.Kinds(mirrors.HostsFiles), func(k ignored.Kind) bool {
		return k.Kind == f.Object.Kind && !isInput(k.Kind)
	})
}

// isInput reports whether objects of a kind that is ignored in part are inputs besides.
func isInput(kind string) bool {
	return slices.ContainsFunc(wantedObjects(OperatorNamespace), func(w objects.Want) bool { return w.Kind == kind })
}
