package base

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// maxVersion is the size of the largest answer about the version of the API server that is read, in bytes.
const maxVersion = 64 << 10

// APITime returns what asks an API server for its time of day, which stands in the header Date of each answer (RFC 9110, section 6.6.1; package
// net/http, ResponseWriter). Each user may ask for the version, where the time is asked for (kubernetes.io/docs/reference/access-authn-authz/rbac,
// Discovery Roles).
func APITime(m manager.Manager) func(context.Context) (time.Time, error) {
	return func(ctx context.Context) (time.Time, error) {
		now, err := askTime(ctx, m)
		if err != nil {
			return time.Time{}, fmt.Errorf("asking an API server for its time: %w", err)
		}
		return now, nil
	}
}

func askTime(ctx context.Context, m manager.Manager) (now time.Time, err error) {
	at, _, err := rest.DefaultServerUrlFor(m.GetConfig())
	if err != nil {
		return time.Time{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.JoinPath("version").String(), nil)
	if err != nil {
		return time.Time{}, err
	}
	answer, err := m.GetHTTPClient().Do(req)
	if err != nil {
		return time.Time{}, err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(answer.Body, maxVersion)) // the connection is used again
	if closed := answer.Body.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return time.Time{}, err
	}
	if answer.StatusCode != http.StatusOK {
		return time.Time{}, fmt.Errorf("the answer is %s", answer.Status)
	}
	return http.ParseTime(answer.Header.Get("Date"))
}
