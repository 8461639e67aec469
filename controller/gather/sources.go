package gather

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/controller/gather/objects"
)

// clusterSource names a live cluster; a context may follow a colon.
const clusterSource = "cluster"

// requestLimit is how long a request to an API server may take. The API server itself ends requests after a minute.
const requestLimit = 30 * time.Second

// UnreachableError means that the cluster could not be read. Trying again later may help.
type UnreachableError struct{ Err error }

func (e *UnreachableError) Error() string {
	if apierrors.IsUnauthorized(e.Err) {
		return "the cluster does not accept the credentials of the kubeconfig: the token may have expired (fix: " +
			"log in again, such as with oc login): " + e.Err.Error()
	}
	return e.Err.Error()
}

// Unwrap implements errors.
func (e *UnreachableError) Unwrap() error { return e.Err }

// IsCluster reports whether a source is a live cluster, and the context that it names. It is one whether or not there
// is a file of the name: a folder is ./cluster.
func IsCluster(source string) (contextName string, ok bool) {
	name, contextName, _ := strings.Cut(source, ":")
	return contextName, name == clusterSource
}

// Kubeconfig selects the live cluster, and the user. Empty fields are as in the file.
type Kubeconfig struct {
	// Path is a file; empty for KUBECONFIG or ~/.kube/config.
	Path string
	// Context is one of it; empty for the current one. Cluster and User replace what the context has.
	Context, Cluster, User string
	// As and AsGroups are the user and the groups that are impersonated. An API server refuses that to those who have
	// no right to it.
	As       string
	AsGroups []string
	// RequestTimeout is how long a request may take, such as 10s or 2 (seconds); empty is for the caller to decide, 0
	// is without a limit.
	RequestTimeout string
}

// OpenSources returns a reader of files and folders, stdin for "-", and live clusters for "cluster" or
// "cluster:CONTEXT". Where two of them hold the same object, the later one wins. They are complete if one of them is a
// cluster. Nothing is read yet.
func OpenSources(from []string, stdin io.Reader, k Kubeconfig) (r objects.Reader, complete bool, err error) {
	return openSourcesWithin(from, stdin, k, requestLimit)
}

func openSourcesWithin(
	from []string, stdin io.Reader, k Kubeconfig, limit time.Duration,
) (r objects.Reader, complete bool, err error) {
	var layers []objects.Reader
	var paths []string
	flush := func() {
		if len(paths) > 0 {
			layers = append(layers, objects.NewPathsReader(paths, stdin))
			paths = nil
		}
	}
	for _, source := range from {
		contextName, isCluster := IsCluster(source)
		if !isCluster {
			paths = append(paths, source)
			continue
		}
		flush()
		named := k
		named.Context = cmp.Or(contextName, k.Context)
		c, err := connectCluster(named, limit)
		if err != nil {
			return nil, false, err
		}
		layers = append(layers, objects.NewClusterReader(c))
		complete = true
	}
	flush()
	return objects.NewOverlayReader(layers...), complete, nil
}

// RESTConfig is the configuration that kubectl uses: the file that is named, KUBECONFIG or ~/.kube/config, and the
// context if one is named; in a Pod without one, that of its service account. Limit is how long a request may take,
// from its connection to the last byte of the answer, unless RequestTimeout is set; zero is without a limit.
func (k Kubeconfig) RESTConfig(limit time.Duration) (*rest.Config, error) {
	if len(k.AsGroups) > 0 && k.As == "" {
		return nil, errors.New("groups cannot be impersonated without a user: give --as too")
	}
	if names := k.ContextNames(); k.Context != "" && !slices.Contains(names, k.Context) {
		has := "it has no contexts"
		if len(names) > 0 {
			has = "it has " + strings.Join(names, ", ")
		}
		return nil, fmt.Errorf(
			"reading the kubeconfig %s: context %q does not exist, %s%s", k.files(), k.Context, has, bundle.DidYouMean(k.Context, names),
		)
	}
	config, err := k.configLoader().ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if k.As != "" { // not by the loader, which does not for the account of a Pod
		config.Impersonate = rest.ImpersonationConfig{UserName: k.As, Groups: k.AsGroups}
	}
	config.Timeout = limit
	if k.RequestTimeout != "" {
		if config.Timeout, err = clientcmd.ParseTimeout(k.RequestTimeout); err != nil {
			return nil, fmt.Errorf("--request-timeout %s: must be a duration such as 10s", k.RequestTimeout)
		}
	}
	return config, nil
}

// ContextNames are the names of the contexts that there are.
func (k Kubeconfig) ContextNames() []string { return slices.Sorted(maps.Keys(k.rawConfig().Contexts)) }

// ClusterNames are the names of the clusters that there are.
func (k Kubeconfig) ClusterNames() []string { return slices.Sorted(maps.Keys(k.rawConfig().Clusters)) }

// UserNames are the names of the users that there are.
func (k Kubeconfig) UserNames() []string { return slices.Sorted(maps.Keys(k.rawConfig().AuthInfos)) }

// files are the kubeconfig files that are read.
func (k Kubeconfig) files() string {
	if k.Path != "" {
		return k.Path
	}
	return strings.Join(clientcmd.NewDefaultClientConfigLoadingRules().Precedence, string(filepath.ListSeparator))
}

// rawConfig is what the files say; nothing where they cannot be read.
func (k Kubeconfig) rawConfig() api.Config {
	raw, err := k.configLoader().RawConfig()
	if err != nil {
		return api.Config{}
	}
	return raw
}

func (k Kubeconfig) configLoader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = k.Path
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{
		CurrentContext: k.Context, Context: api.Context{Cluster: k.Cluster, AuthInfo: k.User},
	})
}

// connectCluster connects with RESTConfig.
func connectCluster(k Kubeconfig, limit time.Duration) (client.Reader, error) {
	config, err := k.RESTConfig(limit)
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return nil, &UnreachableError{fmt.Errorf("connecting to the cluster: %w", err)}
	}
	return c, nil
}

// FactsFile reads what `wmco-node facts` printed on one or more hosts.
func FactsFile(path string) ([]bundle.Facts, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading facts: %w", err)
	}
	defer file.Close() //nolint:errcheck // only read from
	facts, err := bundle.DecodeFacts(file)
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", path, err)
	}
	return facts, nil
}
