package resolvers

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/credentialprovider"
	"sigs.k8s.io/yaml"

	"wmco/bundle"
	"wmco/internal/build/modules"
	"wmco/payload"
	"wmco/render"
	"wmco/render/mirrors"
)

const repositoryRoot = "../../.."

// pullOf is a pull that needs credentials and no imagePullSecret.
type pullOf struct {
	registry string
	asks     challenge
	// user and password are what the registry accepts.
	user, password string
}

// check pulls with the kubelet's credentials, and not without them.
func (p pullOf) check(t *testing.T, n *network, files Files, list []credentialprovider.TrackedAuthConfig) {
	t.Helper()
	image, err := NewImage("app")
	if err != nil {
		t.Fatal(err)
	}
	n.serve(p.registry, trusted, p.handler(image))
	for _, e := range Engines() {
		if _, err := pullWith(t, e, n.client(files), p.registry+"/team/app:1", nil); err == nil {
			t.Errorf("%s: pulled without credentials", e.Version)
		}
		n.take()
		got, err := pullWith(t, e, n.client(files), p.registry+"/team/app:1", list)
		if err != nil {
			t.Errorf("%s: with %d credentials: %v", e.Version, len(list), err)
			continue
		}
		if diff := cmp.Diff(Pulled{Digest: image.Digest(), Blobs: []string{string(image.Config), string(image.Layer)}}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", e.Version, diff)
		}
		if got := n.take().contacted(); got != p.registry {
			t.Errorf("%s: contacted %s", e.Version, got)
		}
	}
}

func (p pullOf) handler(i Image) oneImage {
	return oneImage{image: i, asks: p.asks, realm: "https://" + p.registry + "/token", accepts: func(user, password string) bool { return user == p.user && password == p.password }}
}

// TestPullsWithThePullSecret: an image of a registry in the cluster's pull secret needs no imagePullSecret.
func TestPullsWithThePullSecret(t *testing.T) {
	for _, asks := range []challenge{asksBasic, asksToken} {
		in := inputs()
		in.PullSecret = bundle.NewSecret(`{"auths":{"registry.test/team":{"auth":"` + base64.StdEncoding.EncodeToString([]byte("reader:secret")) + `"}}}`)
		files, _ := bundleOf(t, cluster(in, render.MirrorSettings{PartialNever: mirrors.Closed}))
		p := pullOf{registry: "registry.test", asks: asks, user: "reader", password: "secret"}
		p.check(t, newNetwork(t), hostsFiles(files), lookUp(t, nodeKeyring(t, files[kubeletConfig]), p.registry+"/team/app"))
	}
}

// TestWaysOutOfACRIOCredentialProviderConfig: with one, CRI-O takes credentials for mirrors from Secrets of the Pod's namespace. On Windows they reach a mirror by
// the pull secret's entry for the mirror, or by an imagePullSecret with the mirror's credentials under the name of the image's registry. An imagePullSecret under
// the name of the mirror is no way out: a kubelet looks for the name in the image.
func TestWaysOutOfACRIOCredentialProviderConfig(t *testing.T) {
	auths := func(registry string) string {
		return `{"auths":{"` + registry + `":{"auth":"` + base64.StdEncoding.EncodeToString([]byte("reader:secret")) + `"}}}`
	}
	image, err := NewImage("app")
	if err != nil {
		t.Fatal(err)
	}
	p := pullOf{registry: "mirror.test", asks: asksToken, user: "reader", password: "secret"}
	for name, c := range map[string]struct {
		global, own string
		pulled      bool
	}{
		"an entry of the pull secret for the mirror": {global: "mirror.test", pulled: true},
		"an imagePullSecret for the registry":        {own: "registry.test", pulled: true},
		"an imagePullSecret for the mirror":          {own: "mirror.test"},
		"neither":                                    {},
	} {
		in := inputs(set(itms, "registry.test", never, "mirror.test"))
		in.PullSecret = bundle.NewSecret("{}")
		if c.global != "" {
			in.PullSecret = bundle.NewSecret(auths(c.global))
		}
		var pullSecrets []corev1.Secret
		if c.own != "" {
			pullSecrets = []corev1.Secret{{Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(auths(c.own))}}}
		}
		files, _ := bundleOf(t, cluster(in, render.MirrorSettings{PartialNever: mirrors.Closed}))
		root := t.TempDir()
		if err := hostsFiles(files).Write(root); err != nil {
			t.Fatal(err)
		}
		n := &wire{handler: func(host string) http.Handler {
			if host != p.registry {
				return nil
			}
			return p.handler(image)
		}}
		list := lookUp(t, nodeKeyring(t, files[kubeletConfig]), "registry.test/team/app", pullSecrets...)
		if _, err := pullWith(t, Engines()[0], n.client(root), "registry.test/team/app:1", list); (err == nil) != c.pulled {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// standIn is a cloud: its servers are stand-ins, everything else is real. Its provider is built of the source of the one that nodes have, for this system. It
// reaches the stand-ins by the proxy variables of its environment, as a kubelet's providers inherit them.
type standIn struct {
	platform bundle.Platform
	program  string
	// machineConfig is a file of golden with the cluster's configuration.
	machineConfig string
	pull          pullOf
	// serve serves what the provider asks: the metadata of the machine and the cloud's token endpoint.
	serve func(t *testing.T, n *network, registry http.Handler)
	// asked are "METHOD host" that the provider must have asked.
	asked []string
}

const (
	ecrRegistry = "012345678901.dkr.ecr.eu-central-1.amazonaws.com"
	ecrEndpoint = "api.ecr.eu-central-1.amazonaws.com"
	acrRegistry = "demoacr.azurecr.io"
	garRegistry = "europe-docker.pkg.dev"
	metadata    = "169.254.169.254:80"
	metadataGCP = "metadata.google.internal.:80"
	// What the stand-ins give.
	instanceToken, refreshToken = "token-of-the-instance", "refresh-token-of-the-registry"
)

func standIns() []standIn {
	return []standIn{
		{
			platform: bundle.PlatformAWS, program: payload.ECRProvider, machineConfig: "golden/clusters/aws/machineconfigs.yaml",
			pull: pullOf{ecrRegistry, asksBasic, "AWS", refreshToken}, serve: serveAWS, asked: []string{"PUT " + metadata, "GET " + metadata, "POST " + ecrEndpoint},
		},
		{
			platform: bundle.PlatformAzure, program: payload.ACRProvider, machineConfig: "golden/cases/azure-credential-provider/machineconfig.yaml",
			pull: pullOf{acrRegistry, asksTokenByGet, "00000000-0000-0000-0000-000000000000", refreshToken}, serve: serveAzure, asked: []string{"GET " + metadata, "POST " + acrRegistry},
		},
		{
			platform: bundle.PlatformGCP, program: payload.GCRProvider, machineConfig: "golden/cases/gcp-credential-provider/machineconfig.yaml",
			pull: pullOf{garRegistry, asksToken, "_token", instanceToken}, serve: serveGCP, asked: []string{"GET " + metadataGCP},
		},
	}
}

// TestPullsWithTheIdentityOfACloud: an image of the cloud's registry needs neither an entry of the pull secret nor an imagePullSecret. The kubelet's own code
// reads the rendered configuration and runs the provider; containerd pulls with what the provider returns.
func TestPullsWithTheIdentityOfACloud(t *testing.T) {
	n, kubelet := newNetwork(t), filepath.Join(t.TempDir(), "kubelet")
	// A program of another module, which has all that the kubelet needs to run providers.
	build(t, filepath.Join("internal", "verify", "consumers"), "./kubelet", kubelet)
	for _, c := range standIns() {
		t.Run(string(c.platform), func(t *testing.T) { c.check(t, n, kubelet) })
	}
}

func (c standIn) check(t *testing.T, n *network, program string) {
	directory := t.TempDir()
	provider := payload.Find(c.program)
	build(t, filepath.Join("payload", provider.Component), provider.Package, filepath.Join(directory, bundle.Base(provider.Path)))
	in := cluster(inputs(), render.MirrorSettings{PartialNever: mirrors.Closed})
	in.Platform, in.Machine = c.platform, c.readMachineConfig(t)
	files, kubelet := bundleOf(t, in)
	config := writeFiles(t, directory, files, kubelet)
	c.serve(t, n, c.pull.handler(Image{}))
	n.take()
	lookUp := exec.CommandContext(t.Context(), program, directory, config, directory, c.pull.registry+"/team/app", "other.test/team/app")
	// Nothing else of this computer's environment: variables such as AWS_CA_BUNDLE change what a provider trusts and asks.
	lookUp.Env = []string{"SSL_CERT_FILE=" + os.Getenv("SSL_CERT_FILE"), "HTTP_PROXY=" + n.proxy(), "HTTPS_PROXY=" + n.proxy(), "HOME=" + directory}
	var log bytes.Buffer
	lookUp.Stderr = &log
	out, err := lookUp.Output()
	var own, other []credentialprovider.TrackedAuthConfig
	lines := json.NewDecoder(bytes.NewReader(out))
	if err = errors.Join(err, lines.Decode(&own), lines.Decode(&other)); err != nil || len(own) == 0 {
		t.Fatalf("the kubelet has %d credentials, %v; the provider asked %q\n%s", len(own), err, n.take().asked(), log.String())
	}
	if got := n.take().asked(); !isSubset(c.asked, got) {
		t.Errorf("the provider asked %q, want %q", got, c.asked)
	}
	if len(other) > 0 {
		t.Errorf("another registry gets credentials of the cloud")
	}
	c.pull.check(t, n, hostsFiles(files), own)
}

func isSubset(part, all []string) bool {
	return !slices.ContainsFunc(part, func(s string) bool { return !slices.Contains(all, s) })
}

// asked returns the distinct "METHOD host" of a record.
func (r record) asked() []string {
	var list []string
	for _, x := range r {
		if s := x.method + " " + x.name; !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// readMachineConfig reads what gather reads of a MachineConfig.
func (c standIn) readMachineConfig(t *testing.T) render.MachineConfig {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repositoryRoot, c.machineConfig))
	if err != nil {
		t.Fatal(err)
	}
	m := render.MachineConfig{Providers: map[string]string{}, Azure: render.AzureIdentity{Cloud: "AzurePublicCloud", Tenant: "tenant", Managed: true}}
	file := render.ProviderFile(c.platform)
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var object struct {
			Spec struct {
				Config struct {
					Storage struct {
						Files []struct {
							Path     string
							Contents struct{ Source string }
						}
					}
				}
			}
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		for _, f := range object.Spec.Config.Storage.Files {
			if source, plain := strings.CutPrefix(f.Contents.Source, "data:,"); plain && filepath.Base(f.Path) == file {
				if m.Providers[file], err = url.PathUnescape(source); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if m.Providers[file] == "" {
		t.Fatalf("%s has no %s", c.machineConfig, file)
	}
	return m
}

// writeFiles writes the files of C:\k to a directory, with its name in place of theirs, and those of the kubelet's root directory. It returns the configuration
// of providers that the arguments of the kubelet name.
func writeFiles(t *testing.T, directory string, files map[string]string, kubelet []string) string {
	t.Helper()
	flag := func(name string) string {
		i := slices.IndexFunc(kubelet, func(a string) bool { return strings.HasPrefix(a, "--"+name+"=") })
		if i < 0 {
			t.Fatalf("the kubelet has no --%s: %q", name, kubelet)
		}
		return strings.TrimPrefix(kubelet[i], "--"+name+"=")
	}
	programs := flag("image-credential-provider-bin-dir") + `\`
	config, found := strings.CutPrefix(flag("image-credential-provider-config"), programs)
	for path, text := range files {
		rest, ok := strings.CutPrefix(strings.Replace(path, `C:\var\lib\kubelet\`, programs, 1), programs)
		if !ok || strings.Contains(rest, `\`) {
			continue
		}
		found = found && files[programs+config] != ""
		if err := os.WriteFile(filepath.Join(directory, rest), []byte(strings.ReplaceAll(text, programs, directory+"/")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if !found {
		t.Fatalf("no file %s", flag("image-credential-provider-config"))
	}
	return filepath.Join(directory, config)
}

// build builds a program of another module for this system.
func build(t *testing.T, module, program, to string) {
	t.Helper()
	directory, err := filepath.Abs(filepath.Join(repositoryRoot, module))
	if err != nil {
		t.Fatal(err)
	}
	var refused *modules.RefusedError
	if err := modules.Download(t.Context(), modules.Selection{Dir: directory, Packages: []string{program}}); errors.As(err, &refused) {
		t.Skipf("skipped: the modules of %s are not served: %v", program, err)
	} else if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", to, program)
	cmd.Dir, cmd.Env = directory, append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// proxy starts a proxy of the network and returns its URL: names are those of the stand-ins.
func (n *network) proxy() string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			name := r.URL.Host
			if r.URL.Port() == "" {
				name += ":80"
			}
			if n.addresses[name] == "" {
				n.add(request{name: name, method: r.Method})
				http.Error(w, "unknown name", http.StatusBadGateway)
				return
			}
			(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.Out.URL.Host = n.addresses[name] }}).ServeHTTP(w, r)
			return
		}
		to, err := n.dial(r.Context(), "tcp", r.Host)
		if err != nil {
			http.Error(w, "unknown name", http.StatusBadGateway)
			return
		}
		from, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, err = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
		}
		if err != nil {
			_ = to.Close()
			return
		}
		joinConnections(from, to)
	}))
	n.t.Cleanup(server.Close)
	return server.URL
}

// joinConnections copies between two connections until one ends.
func joinConnections(a, b net.Conn) {
	var both sync.WaitGroup
	for _, c := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			_, _ = io.Copy(c[0], c[1])
			_ = c[0].Close()
		})
	}
	both.Wait()
}

// answers serves bodies by "METHOD path"; others are not found. needs is a header that each request must have.
func answers(t *testing.T, needs string, bodies map[string]string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := bodies[r.Method+" "+r.URL.Path]
		if name, value, _ := strings.Cut(needs, ": "); !ok || needs != "" && r.Header.Get(name) != value {
			t.Logf("no answer for %s %s", r.Method, r.URL)
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, body)
	})
}

// serveAWS is the instance metadata, with the role of the instance, and the endpoint of ECR.
func serveAWS(t *testing.T, n *network, _ http.Handler) {
	const role = "/latest/meta-data/iam/security-credentials/"
	inOneHour := time.Now().Add(time.Hour).UTC()
	n.serve(metadata, plainHTTP, answers(t, "", map[string]string{
		"PUT /latest/api/token": "session", "GET " + role: "worker", "GET " + role + "worker": `{"Code": "Success", "AccessKeyId": "AKIDEXAMPLE", "SecretAccessKey": "key", "Token": "` +
			instanceToken + `", "Expiration": "` + inOneHour.Format(time.RFC3339) + `"}`,
	}))
	n.serve(ecrEndpoint, trusted, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Authorization"), "Credential=AKIDEXAMPLE/") || r.Header.Get("X-Amz-Security-Token") != instanceToken {
			http.Error(w, "not signed by the role of the instance", http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		_, _ = fmt.Fprintf(w, `{"authorizationData": [{"authorizationToken": %q, "expiresAt": %d}]}`, base64.StdEncoding.EncodeToString([]byte("AWS:"+refreshToken)), inOneHour.Unix())
	}))
}

// serveAzure is the instance metadata, with the managed identity of the machine, and what the registry exchanges for the identity's token.
func serveAzure(t *testing.T, n *network, registry http.Handler) {
	n.serve(metadata, plainHTTP, answers(t, "Metadata: true", map[string]string{
		"GET /metadata/identity/oauth2/token": fmt.Sprintf(`{"access_token": %q, "expires_in": "3600", "expires_on": "%d", "resource": "https://containerregistry.azure.net", "token_type": "Bearer"}`,
			instanceToken, time.Now().Add(time.Hour).Unix()),
	}))
	n.serve(acrRegistry, trusted, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/oauth2/exchange" {
			registry.ServeHTTP(w, r)
			return
		}
		if r.FormValue("access_token") != instanceToken || r.FormValue("service") != acrRegistry {
			http.Error(w, "not the token of the identity", http.StatusForbidden)
			return
		}
		_, _ = fmt.Fprintf(w, `{"refresh_token": %q}`, refreshToken)
	}))
}

// serveGCP is the metadata server, with the service account of the instance.
func serveGCP(t *testing.T, n *network, _ http.Handler) {
	const account = "GET /computeMetadata/v1/instance/service-accounts/default/"
	n.serve(metadataGCP, plainHTTP, answers(t, "Metadata-Flavor: Google", map[string]string{
		account + "token": fmt.Sprintf(`{"access_token": %q, "expires_in": 3600, "token_type": "Bearer"}`, instanceToken), account + "email": "worker@example.iam.gserviceaccount.com",
	}))
}
