package winhost

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// metadataLimit is how long a machine outside a cloud waits to learn that it is: its network drops what goes to the
// address, or answers at once that there is no route.
const metadataLimit = time.Second

// Where clouds tell a machine about itself, and the longest name that one gives.
const (
	metadataAddress = "http://169.254.169.254"
	maxMetadataName = 1024
)

// metadata asks a cloud's instance metadata for the machine's name.
//
//	AWS  docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html
//	     PUT latest/api/token, then GET latest/meta-data/local-hostname with the token; without it where there is none
//	GCP  cloud.google.com/compute/docs/metadata/querying-metadata: GET computeMetadata/v1/instance/hostname
type metadata struct {
	// address is http://host without a path.
	address string
	client  *http.Client
}

// newMetadata goes through no proxy: the address is the machine's own link.
func newMetadata() metadata {
	return metadata{metadataAddress, &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// cloud is one whose metadata we ask.
type cloud string

const (
	cloudAWS cloud = "AWS"
	cloudGCP cloud = "GCP"
)

// cloudsOf tells from the texts of a machine's firmware where it may run. On one that says nothing, all are asked.
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

// name asks the clouds at once; it is empty where none answers in time.
func (m metadata) name(ctx context.Context, clouds []cloud) string {
	ctx, cancel := context.WithTimeout(ctx, metadataLimit)
	defer cancel()
	asks := map[cloud]func(context.Context) string{cloudAWS: m.aws, cloudGCP: m.gcp}
	answers := make(chan string, len(clouds))
	for _, c := range clouds {
		go func() { answers <- asks[c](ctx) }()
	}
	for range clouds {
		if name := <-answers; name != "" {
			return name
		}
	}
	return ""
}

func (m metadata) aws(ctx context.Context) string {
	header := map[string]string{}
	token, _ := m.ask(ctx, http.MethodPut, "/latest/api/token", map[string]string{"X-aws-ec2-metadata-token-ttl-seconds": "60"})
	if token != "" {
		header["X-aws-ec2-metadata-token"] = token
	}
	name, _ := m.ask(ctx, http.MethodGet, "/latest/meta-data/local-hostname", header)
	return name
}

func (m metadata) gcp(ctx context.Context) string {
	name, header := m.ask(ctx, http.MethodGet, "/computeMetadata/v1/instance/hostname", map[string]string{"Metadata-Flavor": "Google"})
	if header.Get("Metadata-Flavor") != "Google" {
		return ""
	}
	return name
}

// ask is empty for anything but an answer with status 200 on one line.
func (m metadata) ask(ctx context.Context, method, path string, header map[string]string) (string, http.Header) {
	req, err := http.NewRequestWithContext(ctx, method, m.address+path, nil)
	if err != nil {
		return "", nil
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	res, err := m.client.Do(req)
	if err != nil {
		return "", nil
	}
	defer res.Body.Close() //nolint:errcheck // nothing was written
	body, err := io.ReadAll(io.LimitReader(res.Body, maxMetadataName))
	text := strings.TrimSpace(string(body))
	if err != nil || res.StatusCode != http.StatusOK || strings.ContainsAny(text, " \r\n<") {
		return "", res.Header
	}
	return text, res.Header
}
