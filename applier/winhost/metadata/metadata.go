// Package metadata reads name and identity of the host from the instance metadata of a cloud.
//
//	AWS  docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html
//	     PUT latest/api/token, then GET latest/meta-data/{local-hostname,placement/availability-zone,instance-id} with the token,
//	     without one if there is none
//	GCP  cloud.google.com/compute/docs/metadata/querying-metadata: GET computeMetadata/v1/instance/hostname
package metadata

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"wmco/bundle"
)

// limit is how long a host outside a cloud waits. Its network drops packets to the address, or has no route to it.
const limit = time.Second

// address is that of the metadata service. maxText is the longest answer that is read, in bytes.
const (
	address = "http://169.254.169.254"
	maxText = 1024
)

// Instance is a cloud's answer about a host. What it does not answer in time is empty.
type Instance struct{ Name, ProviderID string }

// Ask returns the answer of its cloud's metadata about the host, nothing if no cloud answers in time. The firmware is
// the texts of its SMBIOS tables: they exclude clouds that need not be asked.
func Ask(ctx context.Context, firmware []string) Instance {
	return newService().firstAnswer(ctx, cloudsOf(firmware))
}

// service is a metadata service.
type service struct {
	// address is http://host without a path.
	address string
	client  *http.Client
}

// newService uses no proxy: the address is link-local.
func newService() service {
	return service{address, &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// cloud is one with a metadata service that is asked.
type cloud string

const (
	cloudAWS cloud = "AWS"
	cloudGCP cloud = "GCP"
)

// cloudsOf returns the clouds that the host may run in: all if the firmware has no texts.
//
//	AWS  docs.aws.amazon.com/AWSEC2/latest/UserGuide/identify_ec2_instances.html: "Amazon EC2", or a version with "amazon"
//	GCP  cloud.google.com/compute/docs/instances/detect-compute-engine: "Google"
func cloudsOf(firmware []string) []cloud {
	if len(firmware) == 0 {
		return []cloud{cloudAWS, cloudGCP}
	}
	var found []cloud
	for name, c := range map[string]cloud{"amazon": cloudAWS, "google": cloudGCP} {
		if slices.ContainsFunc(firmware, func(text string) bool { return strings.Contains(strings.ToLower(text), name) }) {
			found = append(found, c)
		}
	}
	return found
}

// firstAnswer asks the clouds in parallel and returns the first answer.
func (s service) firstAnswer(ctx context.Context, clouds []cloud) Instance {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	asks := map[cloud]func(context.Context) Instance{cloudAWS: s.askAWS, cloudGCP: s.askGCP}
	answers := make(chan Instance, len(clouds))
	for _, c := range clouds {
		go func() { answers <- asks[c](ctx) }()
	}
	for range clouds {
		if i := <-answers; i != (Instance{}) {
			return i
		}
	}
	return Instance{}
}

func (s service) askAWS(ctx context.Context) Instance {
	header := map[string]string{}
	token, _ := s.fetchLine(ctx, http.MethodPut, "/latest/api/token", map[string]string{"X-aws-ec2-metadata-token-ttl-seconds": "60"})
	if token != "" {
		header["X-aws-ec2-metadata-token"] = token
	}
	get := func(path string) string {
		text, _ := s.fetchLine(ctx, http.MethodGet, "/latest/meta-data/"+path, header)
		return text
	}
	i := Instance{Name: bundle.FirstName(get("local-hostname"))}
	if zone, id := get("placement/availability-zone"), get("instance-id"); zone != "" && id != "" {
		i.ProviderID = "aws:///" + zone + "/" + id // github.com/kubernetes/cloud-provider-aws, pkg/providers/v1/instances.go
	}
	return i
}

func (s service) askGCP(ctx context.Context) Instance {
	name, header := s.fetchLine(ctx, http.MethodGet, "/computeMetadata/v1/instance/hostname", map[string]string{"Metadata-Flavor": "Google"})
	if header.Get("Metadata-Flavor") != "Google" {
		return Instance{}
	}
	return Instance{Name: bundle.FirstName(name)}
}

// fetchLine returns the body of an answer with status 200 and one line, "" for any other.
func (s service) fetchLine(ctx context.Context, method, path string, header map[string]string) (string, http.Header) {
	req, err := http.NewRequestWithContext(ctx, method, s.address+path, nil)
	if err != nil {
		return "", nil
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	res, err := s.client.Do(req)
	if err != nil {
		return "", nil
	}
	defer res.Body.Close() //nolint:errcheck // nothing was written
	body, err := io.ReadAll(io.LimitReader(res.Body, maxText))
	text := strings.TrimSpace(string(body))
	if err != nil || res.StatusCode != http.StatusOK || strings.ContainsAny(text, "\r\n<") {
		return "", res.Header
	}
	return text, res.Header
}
