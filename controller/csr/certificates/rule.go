package certificates

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"wmco/bundle"
)

// ApprovalReason is the reason of the condition Approved, that of the existing operator.
const ApprovalReason = "WMCOApprove"

// Decision is what to do with a CSR.
type Decision string

const (
	// Approve means that the certificate may be issued.
	Approve Decision = "Approve"
	// Ask means that Verdict.Host must be asked over SSH, and the rule again with its answers.
	Ask Decision = "Ask"
	// Leave means that the CSR belongs to another approver, or is not as it must be. It is never denied.
	Leave Decision = "Leave"
)

// Reason is the reason of an Event.
type Reason string

const (
	// NotApproved means that a CSR in the name of a host is not one that the host may have made.
	NotApproved Reason = "CertificateNotApproved"
	// NodeNameInvalid means that no Node can have the name of the host. The existing operator has the same reason.
	NodeNameInvalid Reason = "NodeNameValidationFailed"
)

// Known is what the cluster and the hosts say.
type Known struct {
	Platform bundle.Platform
	// Hosts are all Windows hosts that the operator manages: every entry of windows-instances, and every Windows
	// Machine.
	Hosts []Host
	// Nodes are the names of all Nodes of the cluster, those of Linux too.
	Nodes []string
	// Reserved are names and addresses that belong to no host: those of the API server and load balancers of the
	// cluster. A host that claims one of them does not get it into a certificate.
	Reserved []string
	// Domains and Networks are those of which every name and address is the cluster's.
	Domains  []string
	Networks []netip.Prefix
	// Others are names and addresses of other hosts, by the cloud, the operator's records, its resolver and the Nodes
	// of Linux. A host does not get them into a certificate, unless it is the address that its entry is: a record may
	// be older, and a name may be resolved to any address.
	Others []string
}

// Verdict is the answer to a CSR.
type Verdict struct {
	Decision Decision
	// Host is the host that the CSR is about. It is zero where no known host has its name.
	Host Host
	// Reason and Message are those of one Event, a warning about the CSR. They are empty where none is due.
	Reason  Reason
	Message string
}

// DecideRequest judges one CSR. A CSR that was decided before, that cannot be read, or that is about no managed host is
// left without an Event.
func DecideRequest(csr *certificatesv1.CertificateSigningRequest, k Known) Verdict {
	if isDecided(csr) {
		return Verdict{Decision: Leave}
	}
	r, err := parseRequest(csr)
	if err != nil || r.kind == kindOther || r.kind == kindClient && r.isFromNode() {
		return Verdict{Decision: Leave}
	}
	hosts := slices.DeleteFunc(slices.Clone(k.Hosts), func(h Host) bool {
		return h.Name != r.node || r.kind != kindCloud && !h.isInstance()
	})
	if len(hosts) == 0 {
		return Verdict{Decision: Leave}
	}
	c := candidate{request: r, host: hosts[0], known: k}
	if len(hosts) > 1 {
		return c.refuseRequest("%s and %s both say that they are %s; fix: rename one of the hosts, or remove an "+
			"entry that is the same host", hosts[0].ID(), hosts[1].ID(), r.node)
	}
	switch r.kind {
	case kindClient:
		return c.decideClient()
	case kindServing:
		return c.decideServing()
	case kindCloud:
		return c.decideCloudNodeManager()
	case kindOther:
	}
	return Verdict{Decision: Leave}
}

// candidate is a CSR in the name of a host.
type candidate struct {
	request
	host  Host
	known Known
}

func (c candidate) refuseRequest(format string, args ...any) Verdict {
	message := fmt.Sprintf("the %s for node %s (%s) is not approved: ", c.kind, c.node, c.host.ID())
	return Verdict{Decision: Leave, Host: c.host, Reason: NotApproved, Message: message + fmt.Sprintf(format, args...)}
}

const notOurs = "fix: nothing if you know who requested it; otherwise find out who has these credentials"

// decideClient is for the certificate with which a host joins.
func (c candidate) decideClient() Verdict {
	switch {
	case c.spec.Username != bootstrapper:
		return c.refuseRequest("it was requested by %s, not by the node bootstrapper; %s",
			quoteForeignText(c.spec.Username), notOurs)
	case c.formProblem() != "":
		return c.refuseRequest("%s; %s", c.formProblem(), notOurs)
	case len(validation.IsDNS1123Subdomain(c.node)) > 0 || bundle.CheckName(c.node) != nil:
		v := c.refuseRequest("the host's name is not a DNS name, which the name of a Node must be, or one that " +
			"Windows reserves; fix: rename the computer with letters, digits and hyphens")
		v.Reason = NodeNameInvalid
		return v
	case slices.Contains(c.known.Nodes, c.node):
		return c.refuseRequest("a Node of this name exists, and a host asks for a first certificate before it has " +
			"one; fix: nothing if its certificate has expired, it joins again automatically; if it lost its " +
			"certificate, or another host has its name, delete the Node or rename the host")
	case c.belongsToAnother(c.node):
		return c.refuseRequest("the name belongs to another host, or to the cluster; fix: rename the host")
	case c.host.Facts.IsZero() || len(c.host.PendingKey) == 0:
		return Verdict{Decision: Ask, Host: c.host}
	case !samePublicKey(c.x509.PublicKey, c.host.PendingKey):
		return c.refuseRequest("its key is not the one that the host waits with; fix: if no other host has this " +
			"name, another party has the node bootstrapper's token: renew the Secret node-bootstrapper-token of openshift-machine-config-operator")
	}
	return Verdict{Decision: Approve, Host: c.host}
}

// decideServing is for the certificate with which a kubelet is reached.
func (c candidate) decideServing() Verdict {
	switch {
	case !c.isFromNode():
		return c.refuseRequest("it was requested by %s, not by the node; %s",
			quoteForeignText(c.spec.Username), notOurs)
	case c.formProblem() != "":
		return c.refuseRequest("%s; %s", c.formProblem(), notOurs)
	case c.host.Facts.IsZero():
		return Verdict{Decision: Ask, Host: c.host}
	}
	const fix = "fix: if it is right, approve the CSR with oc adm certificate approve; otherwise correct the " +
		"addresses of the Node, or the host's DNS name"
	for _, name := range c.x509.DNSNames {
		if !isDNSName(name) || !c.host.hasName(name) || c.belongsToAnother(name) {
			return c.refuseRequest("the host does not have the name %s; %s", quoteForeignText(name), fix)
		}
	}
	for _, ip := range c.x509.IPAddresses {
		a, ok := netip.AddrFromSlice(ip)
		switch a = a.Unmap(); {
		case !ok || !c.mayBeOwn(a):
			return c.refuseRequest("the host does not have the address %s; %s", quoteForeignText(ip.String()), fix)
		case !c.host.isReachedAt(a):
			return c.refuseRequest("the host was not reached at its address %s; fix: let the operator reach its SSH "+
				"server there, or approve the CSR with oc adm certificate approve", a)
		}
	}
	return Verdict{Decision: Approve, Host: c.host}
}

// decideCloudNodeManager is for cloud-node-manager. The node asks for itself; what the certificate permits is bound to
// its own Node by an admission policy.
func (c candidate) decideCloudNodeManager() Verdict {
	switch {
	case c.known.Platform != bundle.PlatformAzure:
		return c.refuseRequest("cloud-node-manager runs on Azure only; %s", notOurs)
	case !c.isFromNode():
		return c.refuseRequest("it was requested by %s, not by the node; %s",
			quoteForeignText(c.spec.Username), notOurs)
	case c.formProblem() != "":
		return c.refuseRequest("%s; %s", c.formProblem(), notOurs)
	case !slices.Contains(c.known.Nodes, c.node):
		return Verdict{Decision: Leave, Host: c.host}
	}
	return Verdict{Decision: Approve, Host: c.host}
}

// belongsToAnother reports whether a name is that of another host, another Node, or the cluster.
func (c candidate) belongsToAnother(name string) bool {
	others := slices.Concat(c.known.Reserved, c.known.Others, c.otherHosts())
	for _, n := range c.known.Nodes {
		if n != c.node {
			others = append(others, n)
		}
	}
	return containsName(others, name) || isClusterName(name) ||
		slices.ContainsFunc(c.known.Domains, func(domain string) bool {
			return strings.EqualFold(name, domain) || strings.HasSuffix(strings.ToLower(name), "."+strings.ToLower(domain))
		})
}

// maxReached is at how many addresses a host is reached for one request. A kubelet asks for the addresses of its Node,
// which are one or two.
const maxReached = 4

// AddressesToReach returns the addresses of a request for a serving certificate at which the host has to be reached
// before it gets them: those that it claims and that are no other's. Of a request with too many it returns some.
func AddressesToReach(csr *certificatesv1.CertificateSigningRequest, h Host, k Known) []netip.Addr {
	r, err := parseRequest(csr)
	if err != nil || r.kind != kindServing || r.formProblem() != "" {
		return nil
	}
	c := candidate{request: r, host: h, known: k}
	var list []netip.Addr
	for _, ip := range r.x509.IPAddresses {
		if a, ok := netip.AddrFromSlice(ip); ok && len(list) < maxReached && c.mayBeOwn(a.Unmap()) &&
			!h.isReachedAt(a.Unmap()) {
			list = append(list, a.Unmap())
		}
	}
	return list
}

// mayBeOwn reports whether the host claims an address, and nothing shows that it is another's.
func (c candidate) mayBeOwn(a netip.Addr) bool {
	return c.host.claimsAddress(a) && !isForeign(a) && !c.isAnothers(a)
}

// isAnothers reports whether an address is that of another host, or of the cluster.
func (c candidate) isAnothers(a netip.Addr) bool {
	return containsAddress(c.known.Reserved, a) || containsAddress(c.otherHosts(), a) ||
		containsAddress(c.known.Others, a) && !c.host.isEntry(a) ||
		slices.ContainsFunc(c.known.Networks, func(p netip.Prefix) bool { return p.Contains(a) })
}

// otherHosts are the names and addresses of the other hosts, without what they say about themselves.
func (c candidate) otherHosts() []string {
	var list []string
	for _, h := range c.known.Hosts {
		switch {
		case h.ID() == c.host.ID():
		case h.isInstance():
			list = append(list, h.Address)
		default:
			list = append(list, h.Machine, h.Name)
		}
	}
	return list
}

// quoteForeignText quotes text of another author, no longer than a DNS name may be.
func quoteForeignText(text string) string {
	return strconv.Quote(strings.ToValidUTF8(text[:min(len(text), validation.DNS1123SubdomainMaxLength)], "?"))
}
