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

func TestWhatACloudSaysOfItsHost(t *testing.T) {
	const token, name, zone, id = "PUT /latest/api/token", "GET /latest/meta-data/local-hostname", "GET /latest/meta-data/placement/availability-zone", "GET /latest/meta-data/instance-id"
	const google = "GET /computeMetadata/v1/instance/hostname Google"
	both := []cloud{cloudAWS, cloudGCP}
	aws := Instance{"ip-10-0-0-5.ec2.internal", "aws:///us-east-1a/i-0abc"}
	tests := map[string]struct {
		answers cloudAnswers
		clouds  []cloud
		want    Instance
	}{
		"AWS with tokens":              {cloudAnswers{token: "t0ken", name + " t0ken": aws.Name, zone + " t0ken": "us-east-1a", id + " t0ken": "i-0abc"}, both, aws},
		"AWS without tokens":           {cloudAnswers{name: "ip-10-0-0-5.ec2.internal\n", zone: "us-east-1a", id: "i-0abc"}, []cloud{cloudAWS}, aws},
		"a domain with a final dot":    {cloudAnswers{name: "ip-10-0-0-5.corp.example.com."}, []cloud{cloudAWS}, Instance{Name: "ip-10-0-0-5.corp.example.com"}},
		"two domains":                  {cloudAnswers{name: "ip-10-0-0-5.corp.example.com lab.example.com"}, []cloud{cloudAWS}, Instance{Name: "ip-10-0-0-5.corp.example.com"}},
		"two domains with final dots":  {cloudAnswers{name: "ip-10-0-0-5.Corp.example.com. lab.example.com."}, []cloud{cloudAWS}, Instance{Name: "ip-10-0-0-5.corp.example.com"}},
		"AWS without a name":           {cloudAnswers{zone: "us-east-1a", id: "i-0abc"}, both, Instance{ProviderID: aws.ProviderID}},
		"AWS without a zone":           {cloudAnswers{name: aws.Name, id: "i-0abc"}, both, Instance{Name: aws.Name}},
		"GCP":                          {cloudAnswers{google: "win-1.c.project.internal"}, both, Instance{Name: "win-1.c.project.internal"}},
		"no cloud":                     {cloudAnswers{google: "win-1.c.project.internal"}, nil, Instance{}},
		"another cloud":                {cloudAnswers{google: "win-1.c.project.internal"}, []cloud{cloudAWS}, Instance{}},
		"something else answers":       {cloudAnswers{name: "<html>log in</html>"}, both, Instance{}},
		"something answers many lines": {cloudAnswers{name: "a\nb"}, both, Instance{}},
		"no answer":                    {cloudAnswers{}, both, Instance{}},
	}
	for test, tt := range tests {
		t.Run(test, func(t *testing.T) {
			server := httptest.NewServer(tt.answers)
			defer server.Close()
			m := newService()
			m.address = server.URL
			if got := m.firstAnswer(t.Context(), tt.clouds); got != tt.want {
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
	if got := m.firstAnswer(t.Context(), []cloud{cloudAWS, cloudGCP}); got != (Instance{}) {
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
