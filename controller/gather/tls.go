package gather

import (
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/render"
)

// tlsVersions are those that the kubelet knows (k8s.io/component-base/cli/flag, TLSPossibleVersions).
var tlsVersions = []configv1.TLSProtocolVersion{
	configv1.VersionTLS10, configv1.VersionTLS11, configv1.VersionTLS12, configv1.VersionTLS13,
}

// apiServer reads the TLS profile. If none is set, or one without a type, every program uses its default, which is TLS
// 1.2.
func (g *gatherer) apiServer() {
	var server configv1.APIServer
	if !g.readObject(render.FromAPIServer, place{groupConfig, "APIServer", "", clusterName}, &server) {
		return
	}
	profile, problem := ServerTLSProfile(server)
	if problem.Message != "" {
		problem.Object = g.cluster.Origins[render.FromAPIServer]
		g.addFinding(bundle.SeverityError, reason.InputInvalid, problem)
		return
	}
	g.cluster.TLS = profile
}

// ServerTLSProfile returns the profile that the API server's object asks of every server in the cluster; zero if it
// asks for none. A problem has a message.
func ServerTLSProfile(server configv1.APIServer) (render.TLSProfile, bundle.Finding) {
	profile := server.Spec.TLSSecurityProfile
	if profile == nil || profile.Type == "" {
		return render.TLSProfile{}, bundle.Finding{}
	}
	spec := configv1.TLSProfiles[profile.Type]
	if profile.Type == configv1.TLSProfileCustomType && profile.Custom != nil {
		spec = &profile.Custom.TLSProfileSpec
	}
	if spec == nil {
		return render.TLSProfile{}, bundle.Finding{
			Field: "spec.tlsSecurityProfile.type",
			Message: fmt.Sprintf(
				"%q is not a TLS profile, or is Custom without a definition", profile.Type,
			), Fix: "use Old, Intermediate, Modern or Custom",
		}
	}
	if spec.MinTLSVersion != "" && !slices.Contains(tlsVersions, spec.MinTLSVersion) {
		return render.TLSProfile{}, bundle.Finding{
			Field: "spec.tlsSecurityProfile.custom.minTLSVersion",
			Message: fmt.Sprintf(
				"%q is not a TLS version: the kubelet would not start", spec.MinTLSVersion,
			), Fix: "use VersionTLS10, VersionTLS11, VersionTLS12 or VersionTLS13",
		}
	}
	return render.TLSProfile{MinVersion: string(spec.MinTLSVersion), Ciphers: ianaCiphers(spec.Ciphers)}, bundle.Finding{}
}

// openSSLCiphers translates the names of TLS profiles, which are OpenSSL's, into those of the IANA registry, which Go
// uses (iana.org/assignments/tls-parameters). Go implements no others of the profiles' suites.
var openSSLCiphers = map[string]string{
	"TLS_AES_128_GCM_SHA256":        "TLS_AES_128_GCM_SHA256",
	"TLS_AES_256_GCM_SHA384":        "TLS_AES_256_GCM_SHA384",
	"TLS_CHACHA20_POLY1305_SHA256":  "TLS_CHACHA20_POLY1305_SHA256",
	"ECDHE-ECDSA-AES128-GCM-SHA256": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
	"ECDHE-RSA-AES128-GCM-SHA256":   "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
	"ECDHE-ECDSA-AES256-GCM-SHA384": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
	"ECDHE-RSA-AES256-GCM-SHA384":   "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
	"ECDHE-ECDSA-CHACHA20-POLY1305": "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
	"ECDHE-RSA-CHACHA20-POLY1305":   "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
	"ECDHE-ECDSA-AES128-SHA256":     "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
	"ECDHE-RSA-AES128-SHA256":       "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
	"ECDHE-ECDSA-AES128-SHA":        "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
	"ECDHE-RSA-AES128-SHA":          "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
	"ECDHE-ECDSA-AES256-SHA":        "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
	"ECDHE-RSA-AES256-SHA":          "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
	"AES128-GCM-SHA256":             "TLS_RSA_WITH_AES_128_GCM_SHA256",
	"AES256-GCM-SHA384":             "TLS_RSA_WITH_AES_256_GCM_SHA384",
	"AES128-SHA256":                 "TLS_RSA_WITH_AES_128_CBC_SHA256",
	"AES128-SHA":                    "TLS_RSA_WITH_AES_128_CBC_SHA",
	"AES256-SHA":                    "TLS_RSA_WITH_AES_256_CBC_SHA",
	"DES-CBC3-SHA":                  "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
}

// ianaCiphers keeps the profile's order. Suites that Go does not implement (DHE, for example) are left out, as the
// control plane leaves them out.
func ianaCiphers(names []string) []string {
	var out []string
	for _, name := range names {
		if iana := openSSLCiphers[name]; iana != "" {
			out = append(out, iana)
		}
	}
	return out
}
