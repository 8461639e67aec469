// Package gather reads a cluster, live or from files, and returns the plain inputs of render.
//
//	objects.Reader (cluster, folder, must-gather, stdin) --Read--> documents --decode--> render.Cluster, render.Node
//
// It reads all objects at once, checks only whether an object can be decoded, and collects findings. Whether the inputs
// fit together is checked by render. It never writes anything.
package gather

import (
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/controller/gather/ignored"
	"wmco/controller/gather/objects"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/record"
	"wmco/render"
)

// OperatorNamespace is the namespace of the operator and its objects, unless the user chose another.
const OperatorNamespace = "openshift-windows-machine-config-operator"

// Options are the inputs that are not objects of the cluster.
type Options struct {
	// Namespace of the operator; empty is OperatorNamespace.
	Namespace string
	// Complete reports whether the source has every object, as a live cluster does. In others, such as a must-gather,
	// Secrets are missing or emptied, and stand-ins replace them.
	Complete bool
	// Environment is that of the running operator. If it is nil, it is read from the operator's Deployment.
	Environment map[string]string
	// Facts are the facts that hosts report, matched to nodes by address.
	Facts []bundle.Facts
	// Lookups are the answers of a running operator's resolver for the names in windows-instances, by name. It makes
	// one host of an entry by name and another by address. Names that were not looked up are not judged.
	Lookups map[string]Lookup
	// Records say which host each Node is. Nil is for those who only look: Nodes are matched to hosts by the addresses
	// that they report.
	Records *record.Set
	// RecordKey is the operator's key of digests, with which it has sealed the keys in Records
	// (record.Record.ProvenKey).
	RecordKey bundle.Key
	// Nodes are the Windows Nodes of who has them decoded already; empty where there are none. Nil reads them as the
	// other objects.
	Nodes []windowsnode.Node
}

// Result is the result of Gather.
type Result struct {
	Cluster render.Cluster
	// Nodes are the Windows hosts: those with a Node first, by name, then the others by address.
	Nodes []render.Node
	// Instances are all entries of windows-instances by address, the invalid ones too.
	Instances []Instance
	// Reserved is what no host has as its own.
	Reserved Reserved
	Findings bundle.Findings
}

// Gather reads a cluster. It returns an *UnreachableError if the source cannot be reached; a problem with an object is
// a finding.
func Gather(ctx context.Context, r objects.Reader, o Options) (Result, error) {
	if o.Namespace == "" {
		o.Namespace = OperatorNamespace
	}
	set, err := r.Read(ctx, o.resolveWantedObjects())
	if err != nil {
		return Result{}, &UnreachableError{fmt.Errorf("reading cluster: %w", err)}
	}
	for i := range set.Objects {
		o := &set.Objects[i]
		o.Ref.Group, o.Digest = o.Group, o.ContentDigest()
	}
	g := &gatherer{
		options: o, objects: set.Objects, replaced: set.Replaced,
		findings: slices.DeleteFunc(set.Findings, isOptional),
		cluster:  render.Cluster{Origins: render.Origins{}, Copies: !o.Complete},
	}
	g.holdMachines()
	g.reportUnusedSources(set.Unused)
	g.reportAbsentObjects()
	g.readInfrastructure()
	g.readNetworks()
	g.readClusterVersion()
	g.readSettings()
	g.apiServer()
	g.controllerConfig()
	g.machineConfig()
	g.readBootstrap()
	g.readExporter()
	g.readMirrors()
	g.readPinnedImages()
	g.reportIgnored()
	nodes := g.listHosts()
	return Result{
		Cluster: g.cluster, Nodes: nodes, Instances: g.instances, Reserved: g.readReserved(),
		Findings: g.findings.Sorted(),
	}, nil
}

// resolveWantedObjects returns the objects to read: for read-only programs, the install config and objects that Windows nodes ignore
// too.
func (o Options) resolveWantedObjects() []objects.Want {
	wants := wantedObjects(o.Namespace)
	if o.Nodes != nil {
		wants = slices.DeleteFunc(wants, func(w objects.Want) bool { return w.Group == "" && w.Kind == "Node" })
	}
	if o.Records != nil {
		return wants
	}
	return slices.Concat(wants, []objects.Want{installConfigWant()}, ignored.WantedObjects())
}

// isOptional reports whether a finding is about an object that does not affect nodes.
func isOptional(f bundle.Finding) bool { return isAboutInstallConfig(f) || isAboutIgnored(f) }

// isAboutInstallConfig reports whether a finding is that the install config cannot be read. A missing one is reported by
// the part that needs it.
func isAboutInstallConfig(f bundle.Finding) bool {
	return f.Object.Kind == "ConfigMap" && f.Object.Namespace == installConfigPlace().namespace
}

// gatherer collects the inputs of one cluster.
type gatherer struct {
	options Options
	objects []objects.Object
	// replaced are objects of an earlier source that a later one has too.
	replaced []objects.Object
	cluster  render.Cluster
	// infra and network are what cluster is made from; the proxy of a preview needs more of them.
	infra    configv1.Infrastructure
	network  configv1.Network
	findings bundle.Findings
	// instances is filled by nodes.
	instances []Instance
	// machinesRefused is true where the records are known and Machines cannot be listed: which of the hosts of Machines
	// are still there is not known.
	machinesRefused bool
}

// holdMachines makes of the refusal to list Machines a finding that holds up their hosts alone. Without the records,
// the Nodes of these hosts are not known, and it holds up all.
func (g *gatherer) holdMachines() {
	i := slices.IndexFunc(g.findings, func(f bundle.Finding) bool {
		return f.Reason == reason.Forbidden && f.Object.Kind == "Machine"
	})
	if i < 0 || g.options.Records == nil {
		return
	}
	g.machinesRefused = true
	f := &g.findings[i]
	f.Severity, f.Reason = bundle.SeverityWarning, reason.MachinesRefused
	f.Message += ": hosts of Machines wait, and their nodes keep their published bundles"
}

func (g *gatherer) addFinding(severity bundle.Severity, why string, f bundle.Finding) {
	f.Severity, f.Reason = severity, why
	g.findings = append(g.findings, f)
}
