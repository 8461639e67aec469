package gather

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/bundle/reason"
	"wmco/controller/windowsnode/record"
	"wmco/render"
)

// FactsDescribe reports whether the facts are of the host: they have one of its addresses, or the host name of the
// instance.
func FactsDescribe(f bundle.Facts, n render.Node) bool {
	if f.HasAny(allAddresses(n)) {
		return true
	}
	names := []string{f.HostName, f.HostName + "." + f.DNSSuffix}
	return slices.ContainsFunc(names, func(name string) bool { return name != "" && strings.EqualFold(name, n.Address) })
}

func allAddresses(n render.Node) []string {
	return slices.Concat([]string{n.Address}, n.Addresses, n.Reported)
}

// addReport adds what the host's agent reports on its Node: its facts, none where there are none, and whether it
// refuses a layer with the name of the Node or with authorized keys, policies or routes. One that has not reported yet
// came with this operator. The node writes its report itself, and so may others who may patch Nodes: it decides about
// nothing but its own layer, and facts that cannot be those of the host are not used. Such a node keeps its
// published bundle until its agent, which sees that its report was replaced, has written it again.
func (g *gatherer) addReport(n *render.Node, node listedNode, r record.Record) {
	n.Facts, n.OlderAgent, n.NoKeys, n.NoPolicies, n.NoAmazonRoutes = bundle.Facts{}, false, false, false, false
	if _, ok := node.Annotations[published.ReportAnnotation]; !ok {
		return
	}
	f := bundle.Finding{
		Object: node.ref, Field: fmt.Sprintf("metadata.annotations[%q]", published.ReportAnnotation), Node: n.Name,
		Fix: "remove the annotation; the node agent writes it again",
	}
	report, err := node.Report, node.ReportError
	if err != nil {
		f.Message = fmt.Sprintf("the report of the node agent cannot be read: %v", err)
		g.addFinding(bundle.SeverityWarning, reason.FactsUnmatched, f)
		return
	}
	n.OlderAgent, n.NoKeys, n.NoPolicies = !report.Has(published.FeatureNodeName), !report.Has(published.FeatureAuthorizedKeys), !report.Has(published.FeaturePolicies)
	n.NoAmazonRoutes = !report.Has(published.FeatureAmazonRoutes)
	if report.Facts == nil {
		return
	}
	if !FactsDescribe(*report.Facts, *n) {
		f.Message = "the facts that the node reports are of another host; they are not used"
		g.addFinding(bundle.SeverityWarning, reason.FactsUnmatched, f)
		return
	}
	if why := cmp.Or(report.Facts.ExceedsLimit(), n.Contradiction(*report.Facts, g.cluster, ownAddresses(*n, r))); why != "" {
		f.Message = "the facts that the node reports are not used, and the node keeps its bundle: " + why
		f.Fix = "none if the node agent writes its report again within a minute; otherwise correct the " +
			"address in the Machine, in " + render.InstancesConfigMap + " or in the DNS, or find out who writes the annotation"
		g.addFinding(bundle.SeverityWarning, reason.FactsContradicted, f)
		return
	}
	n.Facts = *report.Facts
}

// ownAddresses are the addresses that the host of a Node has as known without its facts: those of its Machine,
// or its entry, the present or last answer of the resolver for that, and where it was reached. The Node's own status, which
// takes another right than its annotations, counts besides where the entry is a name: the kubelet announces the address
// of the default route then, which may be that of another adapter.
func ownAddresses(n render.Node, r record.Record) []string {
	own := slices.Concat([]string{n.Address, r.Address}, n.Addresses, strings.Fields(r.Resolved))
	if n.Backing != render.BackingMachine && !isAddress(n.Address) || n.Backing == render.BackingNode {
		own = append(own, n.Reported...)
	}
	return own
}

func isAddress(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}
