package winhost

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"wmco/bundle"
)

// probeLimit is the limit of one probe.
const probeLimit = 5 * time.Second

// probeNetwork asks a probe of a kind that does not need Windows.
func probeNetwork(ctx context.Context, probe bundle.Probe) error {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	if probe.Kind == bundle.ProbeHTTP {
		return probeHTTP(ctx, probe.Target)
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", probe.Target)
	if err != nil {
		return err
	}
	return conn.Close()
}

// probeHTTP uses no proxy and follows no redirect. It does not verify the certificate: the question is whether the
// service answers, and the request has no secret.
func probeHTTP(ctx context.Context, url string) error {
	client := http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // nothing was written
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s returned %s", url, res.Status)
	}
	return nil
}
