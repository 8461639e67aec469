package olm

import (
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"net/mail"
	"strconv"
	"strings"
	"time"

	"wmco/payload"
)

//go:embed description.md
var descriptionText string

//go:embed icon.svg
var iconImage []byte

// summary is one line about the operator.
const summary = "Adds Windows worker nodes to OKD and OpenShift clusters and keeps them configured"

// displayName is that of the existing operator.
const displayName = "Windows Machine Config Operator"

// iconType is the media type of the icon.
const iconType = "image/svg+xml"

// description returns the part of the specification that people read.
func description(r Release) csvSpec {
	who := r.maintainer()
	return csvSpec{
		Description: descriptionText, DisplayName: displayName,
		Icon: []icon{{base64.StdEncoding.EncodeToString(iconImage), iconType}},
		InstallModes: []installMode{
			// Existing Subscriptions have an OperatorGroup for one namespace; OLM v1 installs for all namespaces. The
			// operator works for the cluster in both.
			{"OwnNamespace", true}, {"SingleNamespace", false}, {"MultiNamespace", false}, {"AllNamespaces", true},
		},
		Keywords:    []string{"windows", "containers", "nodes", "machines"},
		Links:       []link{{"Windows containers on OKD", "https://docs.okd.io/latest/windows_containers/index.html"}},
		Maintainers: []maintainer{{who.Name, who.Address}},
		Maturity:    "beta", MinKubeVersion: minKubernetes(), Provider: link{Name: who.Name},
		RelatedImages: relatedImages(r),
		Version:       r.Version,
	}
}

// relatedImages are all that the operator and its nodes pull. The operator's has the node agents, the Windows
// executables and what must-gather runs.
func relatedImages(r Release) []relatedImage {
	images := []relatedImage{{"operator", r.Image}, {"must-gather", r.Image}}
	if r.PauseImage != "" {
		images = append(images, relatedImage{"pause", r.PauseImage})
	}
	return images
}

// minKubernetes is the oldest API server for which there is a kubelet: none may be older than its kubelets.
func minKubernetes() string { return payload.Releases()[0].Minor + ".0" }

// annotations are those of the ClusterServiceVersion. Namespace is the namespace as JSON.
func annotations(r Release, kinds []ownedKind, namespaceTemplate string) map[string]string {
	const features = "features.operators.openshift.io/"
	var names []string
	var examples []map[string]any
	for _, k := range kinds {
		names = append(names, k.Name)
		_, group, _ := strings.Cut(k.Name, ".")
		examples = append(examples, map[string]any{
			"apiVersion": group + "/" + k.Version, "kind": k.Kind,
			"metadata": map[string]any{"name": "windows-nodes"},
		})
	}
	all := map[string]string{
		"alm-examples": compact(examples), "capabilities": "Seamless Upgrades", "categories": "OpenShift Optional", "certified": "false",
		"containerImage": r.Image, "createdAt": r.Created.UTC().Format(time.RFC3339), "description": summary, "olm.skipRange": r.skipRange(),
		// People read the object and never create it.
		"operators.operatorframework.io/internal-objects":   compact(names),
		"operatorframework.io/cluster-monitoring":           "true",
		"operatorframework.io/suggested-namespace":          namespace,
		"operatorframework.io/suggested-namespace-template": namespaceTemplate,
		"operators.openshift.io/must-gather-image":          r.Image,
		features + "disconnected":                           strconv.FormatBool(r.PauseImage != ""),
		features + "fips-compliant":                         "false", // nothing is built with a validated cryptographic module
		features + "proxy-aware":                            "true",
		features + "tls-profiles":                           "true",
		"support":                                           r.maintainer().Name,
		features + "cni":                                    "true",
		features + "cnf":                                    "false",
		features + "csi":                                    "false",
		features + "token-auth-aws":                         "false",
		features + "token-auth-azure":                       "false",
		features + "token-auth-gcp":                         "false",
	}
	if r.Repository != "" {
		all["repository"] = r.Repository
	}
	return all
}

// maintainer returns the name and the address; Release.check has read them.
func (r Release) maintainer() mail.Address {
	who, err := mail.ParseAddress(r.Maintainer)
	if err != nil {
		return mail.Address{}
	}
	return *who
}

// compact returns JSON of names and texts, which can always be encoded.
func compact(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}
