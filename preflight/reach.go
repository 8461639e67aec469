package preflight

import (
	"fmt"
	"net/url"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// reached returns the answer of an URL that was asked. A host that leaves one out has not reached it.
func reached(a Answer, kind ReachKind, asked string) Reach {
	for _, r := range a.Reached {
		if r.Kind == kind && r.URL == Shown(asked) {
			return r
		}
	}
	return Reach{Kind: kind, URL: Shown(asked), Problem: ProblemConnect, Text: "the host does not say"}
}

// Shown returns an URL without user, query and fragment.
func Shown(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "(no URL)"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// fixOtherAnswer is the fix if another program answers, such as a proxy.
const fixOtherAnswer = "request the URL on the host (curl.exe -k URL), and find out which program answers"

func checkAPI(q Question, a Answer) bundle.Findings {
	texts := map[Problem]problemText{
		ProblemName:    {Reason: reason.APIServerUnresolvable, Fix: "add the name to the DNS that the host asks"},
		ProblemConnect: {Reason: reason.APIServerUnreachable, Fix: "open the way to the API server"},
		ProblemCertificate: {
			Reason: reason.APIServerCertificate,
			Fix:    "check whether something on the way intercepts TLS, and the clock of the host",
		},
		ProblemProxy: {Reason: reason.ProxyUnusable, Fix: "check the proxy, and whether noProxy should have the API server"},
	}
	var all bundle.Findings
	for _, u := range q.API {
		r := reached(a, ReachAPI, u)
		message := fmt.Sprintf("%s is not reached: %q", Shown(u), r.Text)
		switch known, ok := texts[r.Problem]; {
		case r.Problem == ProblemNone:
		case ok:
			all = append(all, refuse(known.Reason, message, known.Fix)...)
		default:
			message = fmt.Sprintf("%s does not answer as an API server: %q", Shown(u), r.Text)
			all = append(all, warn(reason.APIServerAnswer, message, fixOtherAnswer)...)
		}
	}
	return all
}

// problemText is the text of a finding about a problem.
type problemText struct{ Reason, Fix string }

func checkRegistries(q Question, a Answer) bundle.Findings {
	texts := map[Problem]problemText{
		ProblemName:        {Reason: reason.RegistryUnresolvable, Fix: "add the name to the DNS that the host asks"},
		ProblemConnect:     {Reason: reason.RegistryUnreachable, Fix: "open the way to the registry, or correct the mirror sets"},
		ProblemCertificate: {Reason: reason.RegistryCertificate, Fix: "add its CA to the trusted CAs of the cluster's images"},
		ProblemDenied:      {Reason: reason.RegistryDenied, Fix: "correct the entry of the registry in the pull secret"},
		ProblemMissing: {
			Reason: reason.PauseImageMissing,
			Fix:    "mirror the image, or set pauseImage in the operator's configuration",
		},
		ProblemProxy:  {Reason: reason.ProxyUnusable, Fix: "check the proxy, and whether noProxy should have the registry"},
		ProblemAnswer: {Reason: reason.RegistryAnswer, Fix: fixOtherAnswer},
	}
	var all bundle.Findings
	served := false
	for _, p := range q.Places {
		r := reached(a, ReachRegistry, p.Manifest)
		known, ok := texts[r.Problem]
		if r.Problem == ProblemNone {
			served = true
			continue
		}
		if !ok {
			known = texts[ProblemAnswer]
		}
		all = append(all, warn(
			known.Reason, fmt.Sprintf("the pause image is not pulled from %s: %q", Shown(p.Manifest), r.Text),
			known.Fix,
		)...)
	}
	if len(q.Places) > 0 && !served {
		// Without the pause image no pod starts.
		for i := range all {
			all[i].Severity = bundle.SeverityError
		}
	}
	return all
}

// checkIdentity reports what credential providers of a cloud lack. Nothing is wrong with that where no Pod has an image of the cloud's registries.
func checkIdentity(q Question, a Answer) bundle.Findings {
	if q.Identity.Platform == "" {
		return nil
	}
	r := reached(a, ReachIdentity, q.Identity.URL)
	switch r.Problem { //nolint:exhaustive // the others are all about the way
	case ProblemNone:
		return nil
	case ProblemMissing, ProblemDenied:
		return info(
			reason.MachineIdentityMissing, fmt.Sprintf("the credential provider of the cloud has no credentials here, as the machine has no identity for it: %q", r.Text),
			"none if no Pod uses an image of the cloud's registries; otherwise give the machine a role (AWS), a managed identity (Azure) or a service account (Google Cloud) that may read them",
		)
	}
	return warn(
		reason.MetadataUnreachable, fmt.Sprintf("the credential provider of the cloud has no credentials here, as %s is not reached: %q", Shown(q.Identity.URL), r.Text),
		"open the way to the instance metadata, without a proxy",
	)
}
