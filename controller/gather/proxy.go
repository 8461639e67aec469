package gather

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/controller/gather/objects"
	"wmco/render"
	"wmco/render/yamltext"
)

// installConfigPlace is the ConfigMap in which the installer notes the machine networks. Only previews read it.
func installConfigPlace() place {
	return place{"", "ConfigMap", "kube-system", "cluster-config-v1"}
}

func installConfigWant() objects.Want {
	p := installConfigPlace()
	return objects.Want{Version: "v1", Kind: p.kind, Namespace: p.namespace, Names: []string{p.name}}
}

// everyIPv4 is the machine network of an install config without one.
const everyIPv4 = "0.0.0.0/0"

// metadataService is where machines of a cloud ask who they are; wireServer the same of Azure's clouds that are not the
// public one.
const (
	metadataService = "169.254.169.254"
	wireServer      = "168.63.129.16"
)

// readProxy reads the status of Proxy/cluster, even if it is empty. Without that object, it uses the environment from
// OLM.
func (g *gatherer) readProxy(env map[string]string) {
	var proxy configv1.Proxy
	if g.readObject(render.FromProxy, place{groupConfig, "Proxy", "", clusterName}, &proxy) {
		s := g.proxyStatus(proxy)
		g.cluster.Proxy = render.Proxy{
			HTTP: bundle.NewSecret(s.HTTPProxy), HTTPS: bundle.NewSecret(s.HTTPSProxy), NoProxy: s.NoProxy,
		}
		g.maskedProxy("status.httpProxy", s.HTTPProxy, s.HTTPSProxy)
		g.trustedCA(proxy.Spec.TrustedCA.Name)
		return
	}
	g.cluster.Proxy = render.Proxy{
		HTTP: bundle.NewSecret(env["HTTP_PROXY"]), HTTPS: bundle.NewSecret(env["HTTPS_PROXY"]),
		NoProxy: env["NO_PROXY"],
	}
	if ref, ok := g.cluster.Origins[render.FromOperator]; ok && !g.cluster.Proxy.IsZero() {
		g.cluster.Origins[render.FromProxy] = ref
		g.maskedProxy("spec.template.spec.containers", env["HTTP_PROXY"], env["HTTPS_PROXY"])
	}
	g.trustedCA("")
}

// proxyStatus returns the status of Proxy/cluster: that of the object, or for an object of a file that has none, as it
// is kept in git, the one that the cluster's network operator would write. It is never read as "no proxy".
func (g *gatherer) proxyStatus(proxy configv1.Proxy) configv1.ProxyStatus {
	names := proxy.Spec.HTTPProxy != "" || proxy.Spec.HTTPSProxy != ""
	if !names || proxy.Status.HTTPProxy != "" || proxy.Status.HTTPSProxy != "" {
		return proxy.Status
	}
	f := bundle.Finding{Object: g.cluster.Origins[render.FromProxy], Field: "status"}
	if f.Object.Source == "" {
		f.Message = "is empty, so nodes get no proxy, although spec names one"
		f.Fix = "check the cluster's network operator, which sets it: oc get clusteroperator network"
		g.addFinding(bundle.SeverityWarning, reason.ProxyWithoutStatus, f)
		return proxy.Status
	}
	predicted := configv1.ProxyStatus{HTTPProxy: proxy.Spec.HTTPProxy, HTTPSProxy: proxy.Spec.HTTPSProxy}
	var from string
	var missing []string
	if predicted.NoProxy, from, missing = g.noProxy(proxy.Spec.NoProxy); len(missing) > 0 {
		f.Message = "is empty, although spec names a proxy, and what the network operator would write there " +
			"cannot be computed without " + strings.Join(missing, ", ")
		f.Fix = "add the missing objects as another --from, or copy the Proxy with its status: oc get proxies.config.openshift.io cluster -o yaml"
		g.addFinding(bundle.SeverityError, reason.ProxyWithoutStatus, f)
		return predicted
	}
	f.Message = "is empty, as in git: nodes are shown with what the network operator writes there, computed from " + from
	f.Fix = "none; noProxy is exact if the objects are those of the cluster"
	g.addFinding(bundle.SeverityInfo, reason.ProxyStatusPredicted, f)
	return predicted
}

// noProxy returns the list that the network operator makes of the user's, what the machine networks are known from, and
// missing inputs (openshift/cluster-network-operator, pkg/util/proxyconfig).
func (g *gatherer) noProxy(user string) (list, from string, missing []string) {
	if user == "*" {
		return user, "spec", nil
	}
	machines, from := g.machineNetworks()
	apiServer, err := url.Parse(g.infra.Status.APIServerInternalURL)
	services, pods := g.serviceNetworks(), g.podNetworks()
	for _, needed := range []struct {
		isThere bool
		what    string
	}{
		{err == nil && apiServer.Hostname() != "", "status.apiServerInternalURI of Infrastructure/cluster"},
		{len(services) > 0 && len(pods) > 0, "the networks in status of Network/cluster of " + groupConfig},
		{
			from != "",
			fmt.Sprintf(
				"the machine networks: ConfigMap %s in namespace %s, or an earlier Proxy/cluster with a status",
				installConfigPlace().name, installConfigPlace().namespace,
			),
		},
	} {
		if !needed.isThere {
			missing = append(missing, needed.what)
		}
	}
	if len(missing) > 0 {
		return "", "", missing
	}
	all := slices.Concat([]string{
		"127.0.0.1", "localhost", ".svc", ".cluster.local", apiServer.Hostname(),
	}, machines, services, pods, platformNoProxy(g.infra.Status.PlatformStatus), splitEntries(user))
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ","), from, nil
}

// splitEntries returns those of a comma-separated list.
func splitEntries(list string) []string {
	return slices.DeleteFunc(strings.Split(list, ","), func(e string) bool { return e == "" })
}

func (g *gatherer) serviceNetworks() []string {
	if len(g.network.Status.ServiceNetwork) > 0 {
		return g.network.Status.ServiceNetwork
	}
	return g.network.Spec.ServiceNetwork
}

func (g *gatherer) podNetworks() []string {
	networks := g.network.Status.ClusterNetwork
	if len(networks) == 0 {
		networks = g.network.Spec.ClusterNetwork
	}
	var list []string
	for _, n := range networks {
		list = append(list, n.CIDR)
	}
	return list
}

// platformNoProxy is what machines of a cloud reach without a proxy.
func platformNoProxy(p *configv1.PlatformStatus) []string {
	if p == nil {
		return nil
	}
	switch p.Type {
	case configv1.AWSPlatformType:
		return append([]string{metadataService}, awsNames(p.AWS)...)
	case configv1.AzurePlatformType:
		return append([]string{metadataService}, azureNames(p.Azure)...)
	case configv1.GCPPlatformType:
		return []string{metadataService, "metadata", "metadata.google.internal", "metadata.google.internal."}
	case configv1.OpenStackPlatformType:
		return []string{metadataService}
	}
	return nil
}

// awsNames are those of the region's machines.
func awsNames(aws *configv1.AWSPlatformStatus) []string {
	switch {
	case aws == nil:
		return nil
	case aws.Region == "us-east-1":
		return []string{".ec2.internal"}
	}
	return []string{"." + aws.Region + ".compute.internal"}
}

// azureNames are those that clouds other than the public one have.
func azureNames(azure *configv1.AzurePlatformStatus) []string {
	switch {
	case azure == nil || azure.CloudName == configv1.AzurePublicCloud:
		return nil
	case azure.CloudName == configv1.AzureStackCloud:
		return []string{wireServer, azure.ARMEndpoint}
	}
	return []string{wireServer}
}

// machineNetworks returns the networks of machines and where they are known from; nowhere is empty.
func (g *gatherer) machineNetworks() (networks []string, from string) {
	if o, ok := g.findObject(installConfigPlace()); ok {
		if networks, ok = installedNetworks(o); ok {
			return networks, o.String()
		}
	}
	for _, o := range slices.Backward(g.replaced) {
		if networks := earlierNoProxy(o); len(networks) > 0 {
			return networks, "the object that it replaces"
		}
	}
	return nil, ""
}

// maxInstallConfig is the size of the largest install config that is read, in bytes, with the aliases of YAML replaced.
const maxInstallConfig = 1 << 20

// installedNetworks reads the machine networks of the install config.
func installedNetworks(o objects.Object) (networks []string, ok bool) {
	var cm corev1.ConfigMap
	var config struct {
		Networking *struct {
			MachineCIDR    string `json:"machineCIDR"`
			MachineNetwork []struct {
				CIDR string `json:"cidr"`
			} `json:"machineNetwork"`
		} `json:"networking"`
	}
	if kjson.UnmarshalCaseSensitivePreserveInts(o.JSON, &cm) != nil {
		return nil, false
	}
	text := []byte(cm.Data["install-config"])
	if beyond, err := yamltext.ExpandsBeyond(text, maxInstallConfig); len(text) > maxInstallConfig ||
		err != nil || beyond || yaml.Unmarshal(text, &config) != nil || config.Networking == nil {
		return nil, false
	}
	networks = []string{config.Networking.MachineCIDR}
	for _, n := range config.Networking.MachineNetwork {
		networks = append(networks, n.CIDR)
	}
	return slices.DeleteFunc(networks, func(cidr string) bool { return cidr == "" || cidr == everyIPv4 }), true
}

// earlierNoProxy returns what the network operator itself had put into the list of a Proxy: the status without what the
// user had listed.
func earlierNoProxy(o objects.Object) []string {
	var proxy configv1.Proxy
	if o.Kind != "Proxy" || kjson.UnmarshalCaseSensitivePreserveInts(o.JSON, &proxy) != nil {
		return nil
	}
	users := splitEntries(proxy.Spec.NoProxy)
	return slices.DeleteFunc(splitEntries(proxy.Status.NoProxy), func(e string) bool { return slices.Contains(users, e) })
}

// maskedProxy reports passwords that a must-gather, or docs/gitops, masked.
func (g *gatherer) maskedProxy(field string, urls ...string) {
	if g.options.Complete || !slices.ContainsFunc(urls, func(u string) bool { return strings.Contains(u, ":****@") }) {
		return
	}
	g.addFinding(bundle.SeverityWarning, reason.SecretStandIn, bundle.Finding{
		Object: g.cluster.Origins[render.FromProxy], Field: field, Message: "has a password that the must-gather or snapshot masked",
		Fix: "add the object as another --from, or read the live cluster, to see the real bundle",
	})
}

// trustedCA reads the CAs that the network operator injects into the operator's ConfigMap. Given is the ConfigMap that
// the Proxy names: where it names one and nothing is injected yet, nodes must keep the CAs that they have. Without a
// proxy the existing operator imports none, and neither do we.
func (g *gatherer) trustedCA(given string) {
	at := place{"", "ConfigMap", g.options.Namespace, render.TrustedCAConfigMap}
	o, ok := g.findObject(at)
	var cm corev1.ConfigMap
	ok = ok && g.decodeObject(o, &cm)
	empty := strings.TrimSpace(cm.Data[render.TrustedCAKey]) == ""
	switch {
	case g.cluster.Proxy.IsZero():
		if ok && !empty {
			g.addFinding(bundle.SeverityInfo, reason.TrustedCAIgnored, bundle.Finding{
				Object: o.Ref, Message: "is ignored: the cluster has no proxy, so nodes get no CAs of a proxy", Fix: "none, or remove the ConfigMap",
			})
		}
	case empty && given != "":
		f := bundle.Finding{
			Object: bundle.Ref{
				Kind: at.kind, Namespace: at.namespace, Name: at.name,
			}, Message: "is not in the inputs, and Proxy/cluster names trusted CAs (" + given + "): nodes would lose them",
			Fix: "create the ConfigMap with the label " + render.TrustedCALabel + "=true; the cluster's network operator fills it",
		}
		if ok {
			f.Object, f.Field = o.Ref, `data["`+render.TrustedCAKey+`"]`
			f.Message = "is empty, and Proxy/cluster names trusted CAs (" + given + "): nodes would lose them"
			f.Fix = "check the label " + render.TrustedCALabel + "=true of the ConfigMap, and the cluster's network operator, which fills it"
		}
		g.addFinding(bundle.SeverityError, reason.InputMissing, f)
	case ok:
		g.cluster.Origins[render.FromTrustedCA], g.cluster.TrustedCAs = o.Ref, cm.Data[render.TrustedCAKey]
	}
}
