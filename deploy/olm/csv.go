package olm

import (
	rbacv1 "k8s.io/api/rbac/v1"
)

// clusterServiceVersion is the part of the kind that is used here (github.com/operator-framework/api,
// pkg/operators/v1alpha1).
type clusterServiceVersion struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       csvSpec  `json:"spec"`
}

type metadata struct {
	Name        string            `json:"name"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
}

type csvSpec struct {
	Owned          owned          `json:"customresourcedefinitions"`
	Description    string         `json:"description"`
	DisplayName    string         `json:"displayName"`
	Icon           []icon         `json:"icon"`
	Install        install        `json:"install"`
	InstallModes   []installMode  `json:"installModes"`
	Keywords       []string       `json:"keywords"`
	Links          []link         `json:"links"`
	Maintainers    []maintainer   `json:"maintainers"`
	Maturity       string         `json:"maturity"`
	MinKubeVersion string         `json:"minKubeVersion"`
	Provider       link           `json:"provider"`
	RelatedImages  []relatedImage `json:"relatedImages"`
	Version        string         `json:"version"`
}

type owned struct {
	Owned []ownedKind `json:"owned"`
}

type ownedKind struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	Kind        string `json:"kind"`
	DisplayName string `json:"displayName"`
	Description string `json:"description"`
}

type icon struct {
	Data      string `json:"base64data"`
	MediaType string `json:"mediatype"`
}

type install struct {
	Strategy string      `json:"strategy"`
	Spec     installSpec `json:"spec"`
}

// installSpec has no `permissions`: under an OperatorGroup for all namespaces OLM makes them rights in every namespace.
// What is for the operator's own namespace are Role objects of the bundle.
type installSpec struct {
	ClusterPermissions []permissions `json:"clusterPermissions"`
	Deployments        []deployment  `json:"deployments"`
}

type permissions struct {
	ServiceAccountName string              `json:"serviceAccountName"`
	Rules              []rbacv1.PolicyRule `json:"rules"`
}

type deployment struct {
	Name  string            `json:"name"`
	Label map[string]string `json:"label,omitempty"`
	Spec  map[string]any    `json:"spec"`
}

type installMode struct {
	Type      string `json:"type"`
	Supported bool   `json:"supported"`
}

type link struct {
	Name string `json:"name"`
	URL  string `json:"url,omitempty"`
}

type maintainer struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

type relatedImage struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}
