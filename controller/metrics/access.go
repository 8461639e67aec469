package metrics

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// access lets requests pass whose bearer token the API server knows, and whose user may ask for the path. It needs to
// create TokenReviews and SubjectAccessReviews and nothing else: a reader of client certificates would need the
// ConfigMap with their CA in kube-system.
//
// controller-runtime's own filter answers a wrong token with status 500, logs each, and links the library of API
// servers.
type access struct {
	tokens  authenticationclient.TokenReviewInterface
	reviews authorizationclient.SubjectAccessReviewInterface
	// allowed is what was allowed, refused are other verdicts; both by the digest of what was asked. They are two, as a
	// client can have any number of tokens refused.
	allowed, refused *cache.LRUExpireCache
	// addresses are those from which a token was allowed: the kubelet exchanges that of Prometheus within the hour.
	addresses *cache.LRUExpireCache
	// renewals and firsts are how often the API server may be asked: by those that come from where something was
	// allowed, and by others.
	renewals, firsts flowcontrol.RateLimiter
}

// verdict is an HTTP status.
type verdict int

const (
	// allowedFor is how long a token is let in after the API server was asked; one that is revoked is as long still
	// valid.
	allowedFor = time.Minute
	// refusedFor is how long a refused one is refused without asking.
	refusedFor = 10 * time.Second
	// renewedFor is how long it is known that a token from an address was let in: Prometheus comes back within a
	// minute, and after a while without it too.
	renewedFor = 24 * time.Hour
	// maxKnown is the number of verdicts of each kind that are kept.
	maxKnown = 256
	// rate and burst are how many questions of each kind there are in a second for long, and at once. Each is one or
	// two requests to the API server.
	rate, burst = 5, 10
	// askLimit is for both questions.
	askLimit = 10 * time.Second
)

// NewAccessFilter returns the filter before a handler. Its requests have rates of their own: whoever sends tokens to the
// port does not slow down the operator, nor who was let in before.
func NewAccessFilter(config *rest.Config, http *http.Client) (server.Filter, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.RateLimiter = -1, nil // who has to wait is turned away before
	tokens, err := authenticationclient.NewForConfigAndClient(config, http)
	if err != nil {
		return nil, err
	}
	reviews, err := authorizationclient.NewForConfigAndClient(config, http)
	if err != nil {
		return nil, err
	}
	a := access{
		tokens: tokens.TokenReviews(), reviews: reviews.SubjectAccessReviews(),
		allowed: cache.NewLRUExpireCache(maxKnown), refused: cache.NewLRUExpireCache(maxKnown),
		addresses: cache.NewLRUExpireCache(maxKnown),
		renewals:  flowcontrol.NewTokenBucketRateLimiter(rate, burst),
		firsts:    flowcontrol.NewTokenBucketRateLimiter(rate, burst),
	}
	return a.filterRequests, nil
}

func (a access) filterRequests(log logr.Logger, next http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := a.judgeRequest(r)
		if err != nil {
			log.Info("a request for metrics is refused: its token cannot be judged", "error", err.Error())
		}
		switch v {
		case http.StatusOK:
			next.ServeHTTP(w, r)
			return
		case http.StatusUnauthorized:
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		w.Header().Set("Connection", "close")
		http.Error(w, http.StatusText(int(v)), int(v))
	}), nil
}

// judgeRequest returns the status of a request. The error is why the API server could not be asked, and is not
// remembered.
func (a access) judgeRequest(r *http.Request) (verdict, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return http.StatusUnauthorized, nil
	}
	verb := strings.ToLower(r.Method)
	key := sha256.Sum256([]byte(verb + " " + r.URL.Path + " " + token))
	if v, ok := a.refused.Get(key); ok {
		return v.(verdict), nil //nolint:forcetypeassert // nothing else is added
	}
	questions, from := a.firsts, addressOf(r)
	if _, ok := a.addresses.Get(from); ok {
		questions = a.renewals
	}
	if _, ok := a.allowed.Get(key); ok {
		return http.StatusOK, nil
	}
	if !questions.TryAccept() {
		return http.StatusTooManyRequests, nil
	}
	ctx, stop := context.WithTimeout(r.Context(), askLimit)
	defer stop()
	v, err := a.askAPIServer(ctx, token, verb, r.URL.Path)
	switch {
	case err != nil:
	case v == http.StatusOK:
		a.allowed.Add(key, true, allowedFor)
		a.addresses.Add(from, true, renewedFor)
	default:
		a.refused.Add(key, v, refusedFor)
	}
	return v, err
}

// addressOf returns where a request comes from, without the port.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

func (a access) askAPIServer(ctx context.Context, token, verb, path string) (verdict, error) {
	who, err := a.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return http.StatusServiceUnavailable, fmt.Errorf("creating a TokenReview: %w", err)
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := who.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for key, value := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(value)
	}
	may, err := a.reviews.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: verb},
	}}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return http.StatusServiceUnavailable, fmt.Errorf("creating a SubjectAccessReview: %w", err)
	case !may.Status.Allowed:
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}
