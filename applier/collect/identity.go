package collect

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"

	"wmco/bundle"
	"wmco/preflight"
)

// maxMetadata is the part of an answer that is read, in bytes.
const maxMetadata = 4 << 10

// askIdentity asks the instance metadata for the identity of the machine, as the credential provider of the cloud does. The token of Azure's answer is not kept.
func (p prober) askIdentity(ctx context.Context) preflight.Reach {
	i := p.question.Identity
	r := preflight.Reach{Kind: preflight.ReachIdentity, URL: preflight.Shown(i.URL), ByProxy: p.byProxy(i.URL)}
	header := http.Header{}
	switch i.Platform { //nolint:exhaustive // the others have no such metadata
	case bundle.PlatformAWS:
		header.Set("X-Aws-Ec2-Metadata-Token", p.sessionOfAWS(ctx, i.URL))
	case bundle.PlatformAzure:
		header.Set("Metadata", "true")
	case bundle.PlatformGCP:
		header.Set("Metadata-Flavor", "Google")
	}
	status, text, err := p.getMetadata(ctx, http.MethodGet, i.URL, header)
	switch scopes := i.Platform == bundle.PlatformGCP; {
	case err != nil:
		p.fail(&r, err)
	case status == http.StatusOK && text == "", status == http.StatusNotFound, status == http.StatusBadRequest:
		r.Problem, r.Text = preflight.ProblemMissing, "the instance metadata has none"
	case status != http.StatusOK:
		r.Problem, r.Text = preflight.ProblemAnswer, http.StatusText(status)
	// Scopes by which k8s.io/cloud-provider-gcp (pkg/gcpcredential) takes an account for one that may pull.
	case scopes && !strings.Contains(text, "/auth/devstorage") && !strings.Contains(text, "/auth/cloud-platform"):
		r.Problem, r.Text = preflight.ProblemDenied, "the service account has no scope to read storage"
	}
	return r
}

// sessionOfAWS returns the token that the metadata of AWS asks for in its second version; empty where it is not given.
func (p prober) sessionOfAWS(ctx context.Context, metadata string) string {
	u, err := url.Parse(metadata)
	if err != nil {
		return ""
	}
	u.Path = "/latest/api/token"
	status, text, err := p.getMetadata(ctx, http.MethodPut, u.String(), http.Header{"X-Aws-Ec2-Metadata-Token-Ttl-Seconds": {"60"}})
	if err != nil || status != http.StatusOK {
		return ""
	}
	return text
}

func (p prober) getMetadata(ctx context.Context, method, address string, header http.Header) (status int, text string, err error) {
	request, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return 0, "", err
	}
	request.Header = header
	response, err := p.client(nil, false).Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	body, err := io.ReadAll(io.LimitReader(response.Body, maxMetadata))
	return response.StatusCode, strings.TrimSpace(string(body)), err
}
