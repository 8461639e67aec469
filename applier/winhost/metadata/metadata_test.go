package metadata

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// cloudAnswers maps "METHOD path header" to the body of the answer.
type cloudAnswers map[string]string

func (c cloudAnswers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.Method + " " + r.URL.Path
	for _, header := range []string{"X-Aws-Ec2-Metadata-Token", "Metadata-Flavor"} {
		if v := r.Header.Get(header); v != "" {
			key += " " + v
		}
	}
	body, ok := c[key]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if r.Header.Get("Metadata-Flavor") != "" {
		w.Header().Set("Metadata-Flavor", "Google")
	}
	fmt.Fprint(w, body)
}

func TestName(t *testing.T) {
	const token, name = "PUT /latest/api/token", "/latest/meta-data/local-hostname"
	const google = "GET /computeMetadata/v1/instance/hostname Google"
	both := []cloud{cloudAWS, cloudGCP}
	tests := map[string]struct {
		answers cloudAnswers
		clouds  []cloud
		want    string
	}{
		"AWS with tokens":              {cloudAnswers{token: "t0ken", "GET " + name + " t0ken": "ip-10-0-0-5.ec2.internal"}, both, "ip-10-0-0-5.ec2.internal"},
		"AWS without tokens":           {cloudAnswers{"GET " + name: "ip-10-0-0-5.ec2.internal\n"}, []cloud{cloudAWS}, "ip-10-0-0-5.ec2.internal"},
		"GCP":                          {cloudAnswers{google: "win-1.c.project.internal"}, both, "win-1.c.project.internal"},
		"no cloud":                     {cloudAnswers{google: "win-1.c.project.internal"}, nil, ""},
		"another cloud":                {cloudAnswers{google: "win-1.c.project.internal"}, []cloud{cloudAWS}, ""},
		"something else answers":       {cloudAnswers{"GET " + name: "<html>log in</html>"}, both, ""},
		"something answers many lines": {cloudAnswers{"GET " + name: "a\nb"}, both, ""},
		"no answer":                    {cloudAnswers{}, both, ""},
	}
	for test, tt := range tests {
		t.Run(test, func(t *testing.T) {
			server := httptest.NewServer(tt.answers)
			defer server.Close()
			m := newService()
			m.address = server.URL
			if got := m.firstCloudName(t.Context(), tt.clouds); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAServiceThatDoesNotAnswerIsNotWaitedForLong(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	m := newService()
	m.address = server.URL
	begin := time.Now()
	if got := m.firstCloudName(t.Context(), []cloud{cloudAWS, cloudGCP}); got != "" {
		t.Errorf("got %q", got)
	}
	if took := time.Since(begin); took > 5*limit {
		t.Errorf("it took %s", took)
	}
}

func TestCloudsOf(t *testing.T) {
	tests := map[string]struct {
		firmware []string
		want     []cloud
	}{
		"no texts":           {nil, []cloud{cloudAWS, cloudGCP}},
		"AWS":                {[]string{"Amazon EC2", "m5.large"}, []cloud{cloudAWS}},
		"AWS on Xen":         {[]string{"Xen", "4.11.amazon"}, []cloud{cloudAWS}},
		"GCP":                {[]string{"Google", "Google Compute Engine"}, []cloud{cloudGCP}},
		"a host on premises": {[]string{"VMware, Inc.", "VMware7,1"}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := cloudsOf(tt.firmware)
			slices.Sort(got)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
